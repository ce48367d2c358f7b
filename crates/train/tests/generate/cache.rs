//! Logits with a cache are those without.

use std::sync::LazyLock;

use burn::tensor::{Device, Int, Tensor, TensorData};
use proptest::prelude::*;
use thinwire_pretrained::Pretrained;
use thinwire_train::config::{StageUnits, Unit};
use thinwire_train::generate::Session;
use thinwire_train::model::{Activation, Architecture, Part};
use thinwire_train::pretrained::load_part;

use crate::fixture::folder;
use crate::models::{MODELS, open, pipeline};

/// The longest sequence.
const TOKENS: usize = 40;

/// Products of one row and of many sum in different orders. A value that passes 3 blocks is a sum over some 10 rows of at
/// most 64 products, each rounded to 2^-24 of partial sums that are below 8 times the logits' size of 10; 64 * 10 * 80 *
/// 2^-24 bounds it. Roundings do not conspire, so it is their root that is allowed: sqrt(64 * 10) * 80 * 2^-24.
const TOLERANCE: f32 = 1.2e-4;

struct Whole {
    part: Part,
    name: &'static str,
}

static WHOLE: LazyLock<Vec<Whole>> = LazyLock::new(|| MODELS.map(whole).into());

fn whole(name: &'static str) -> Whole {
    let model = Pretrained::open(folder(name)).unwrap();
    let layers = Architecture::from(model.config()).layers;
    let units: Vec<Unit> = StageUnits::whole(layers).iter().collect();
    Whole { part: load_part(&model, &units, &Device::flex()).unwrap(), name }
}

impl Whole {
    /// All at once, without a cache: `[tokens, vocab]`.
    fn logits(&self, ids: &[u32]) -> Vec<f32> {
        let data: Vec<i64> = ids.iter().map(|&id| i64::from(id)).collect();
        let ids = Tensor::<2, Int>::from_data(TensorData::new(data, [1, ids.len()]), &Device::flex());
        match self.part.forward(&self.part.params().constants(), Activation::Ids(ids)) {
            Activation::Logits(logits) => logits.into_data().try_to_vec().unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn however_the_sequence_comes(
        model in 0..MODELS.len(),
        ids in prop::collection::vec(0u32..64, 1..=TOKENS),
        ends in prop::collection::vec(any::<bool>(), TOKENS),
        places in prop::sample::subsequence(vec![0usize, 1, 2, 3], 0..=2),
    ) {
        let whole = &WHOLE[model];
        let expected = whole.logits(&ids);
        let mut pipeline = pipeline(&open(whole.name), &places, "f32");
        let mut session = Session::new(&pipeline, ids.len()).unwrap();
        let mut found = Vec::new();
        let mut start = 0;
        for end in 1..=ids.len() {
            if ends[end - 1] || end == ids.len() {
                found.extend(session.extend(&mut pipeline, &ids[start..end], end - start).unwrap());
                start = end;
            }
        }
        prop_assert_eq!(found.len(), expected.len());
        let error = found.iter().zip(&expected).fold(0.0, |max, (a, b)| f32::max(max, (a - b).abs()));
        prop_assert!(error <= TOLERANCE, "{}: {}", whole.name, error);
    }
}

#[test]
fn the_last_logits_alone_are_the_same() {
    let ids: Vec<u32> = (0..20).map(|i| i * i * 7 % 64).collect();
    for whole in WHOLE.iter() {
        let expected = whole.logits(&ids);
        let mut pipeline = pipeline(&open(whole.name), &[1], "f32");
        for last in [1, 3, 20] {
            let mut session = Session::new(&pipeline, 20).unwrap();
            let found = session.extend(&mut pipeline, &ids, last).unwrap();
            let expected = &expected[(20 - last) * 64..];
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= TOLERANCE), "{}", whole.name);
        }
    }
}
