//! How often the likeliest choice is the right one.

use super::{Encoded, Question, Score};

/// Right answers by what the log-likelihood of a choice is divided by before the largest is taken. Of equal ones the
/// first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accuracy {
    /// Questions.
    pub questions: usize,
    /// By nothing: the harness's `acc`.
    pub plain: usize,
    /// By the choice's characters: the harness's `acc_norm`.
    pub by_characters: usize,
    /// By its bytes in UTF-8: the harness's `acc_bytes`.
    pub by_bytes: usize,
    /// By its tokens.
    pub by_tokens: usize,
}

impl Accuracy {
    /// Counts a question whose choices have these `scores`.
    pub fn add(&mut self, question: &Question, encoded: &Encoded, scores: &[Score]) {
        let right = |length: &dyn Fn(usize) -> usize| {
            let best = (0..scores.len())
                .map(|choice| (choice, scores[choice].log_likelihood / length(choice) as f64))
                .reduce(|best, next| if next.1 > best.1 { next } else { best });
            usize::from(best.is_some_and(|(choice, _)| choice == question.answer))
        };
        self.questions += 1;
        self.plain += right(&|_| 1);
        self.by_characters += right(&|choice| question.choices[choice].chars().count());
        self.by_bytes += right(&|choice| question.choices[choice].len());
        self.by_tokens += right(&|choice| encoded.choices[choice].tokens());
    }

    /// Standard error of a share of right answers: `sqrt(p (1 - p) / (n - 1))`; NaN for a single question.
    pub fn standard_error(&self, right: usize) -> f64 {
        let p = right as f64 / self.questions as f64;
        (p * (1.0 - p) / (self.questions as f64 - 1.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::score::Sequence;

    #[test]
    fn each_length_has_its_own_winner() {
        // Bytes 2, 8, 2; characters 2, 2, 2; tokens 2, 1, 3.
        let texts = ["ab", "\u{1f600}\u{1f601}", "ab"];
        let question = |answer| Question {
            context: String::new(),
            delimiter: "",
            choices: texts.map(str::to_owned).to_vec(),
            answer,
        };
        let sequence = |tokens: usize| Sequence { ids: vec![0; tokens + 1], context: 1 };
        let encoded = Encoded { choices: [2, 1, 3].map(sequence).to_vec(), truncated: false };
        // By bytes: -2, -0.6, -2.4; by characters and plain the first; by tokens -2, -5, -1.6.
        let scores = [-4.0, -5.0, -4.8].map(|log_likelihood| Score { log_likelihood });
        let count = |answer| {
            let mut accuracy = Accuracy::default();
            accuracy.add(&question(answer), &encoded, &scores);
            let Accuracy { plain, by_characters, by_bytes, by_tokens, .. } = accuracy;
            [plain, by_characters, by_bytes, by_tokens]
        };
        assert_eq!([count(0), count(1), count(2)], [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]);
    }

    #[test]
    fn the_error_is_that_of_the_mean() {
        let accuracy = Accuracy { questions: 101, ..Accuracy::default() };
        assert!((accuracy.standard_error(50) - 0.05).abs() < 1e-5);
        assert_eq!(accuracy.standard_error(101), 0.0);
    }
}
