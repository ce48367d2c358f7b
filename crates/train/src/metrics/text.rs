//! Numbers as people read them.

/// `12.3 MB`; decimal units, three digits.
pub fn bytes(count: u64) -> String {
    with_unit(count as f64, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// `100 Mbit/s`.
pub fn bit_rate(bits_per_second: f64) -> String {
    with_unit(bits_per_second, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// `1,228,800`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `0.83 s`, `12.3 s`, `4m 50s`, `3h 07m`, `5d 04h`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".to_owned();
    }
    match seconds.round() as u64 {
        _ if seconds < 9.995 => format!("{seconds:.2} s"),
        _ if seconds < 59.95 => format!("{seconds:.1} s"),
        s if s < 3600 => format!("{}m {:02}s", s / 60, s % 60),
        s if s < 86_400 => format!("{}h {:02}m", s / 3600, s / 60 % 60),
        s => format!("{}d {:02}h", s / 86_400, s / 3600 % 24),
    }
}

/// The figure by `format`, or a dash for one that is not known.
pub fn or_dash(value: Option<f64>, format: impl FnOnce(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), format)
}

/// At most `width` characters; a cut line ends in an ellipsis.
pub fn fit(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let mut text: String = line.chars().take(width.saturating_sub(1)).collect();
    text.push('…');
    text
}

fn with_unit(value: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let mut value = value;
    let mut unit = 0;
    // Values that three digits would show as 1000 belong to the next unit.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (9_999, "10.0 kB"),
            (999_600, "1.00 MB"),
            (u64::MAX, "18447 PB"),
        ];
        for (value, text) in cases {
            assert_eq!(bytes(value), text);
        }
        assert_eq!(bit_rate(100e6), "100 Mbit/s");
        assert_eq!(bit_rate(f64::NAN), "-");
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!([0, 999, 1000, 1_228_800].map(count), ["0", "999", "1,000", "1,228,800"]);
    }

    #[test]
    fn durations_carry_over() {
        let cases = [
            (0.0, "0.00 s"),
            (9.999, "10.0 s"),
            (59.97, "1m 00s"),
            (3599.6, "1h 00m"),
            (11_220.0, "3h 07m"),
            (446_400.0, "5d 04h"),
            (f64::INFINITY, "-"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(fit("0 → 1", 5), "0 → 1");
        assert_eq!(fit("0 → 12", 5), "0 → …");
    }
}
