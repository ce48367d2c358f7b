//! The text of codec specs.

mod common;

use common::{random, specs};
use proptest::prelude::*;
use thinwire_codec::{AqsgdSettings, CodecSpec, DType, FixedSettings, GroupSettings, TahSettings};

fn error(text: &str) -> String {
    match text.parse::<CodecSpec>() {
        Ok(spec) => panic!("`{text}` was read as {spec}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn defaults_and_aliases() {
    for (text, full) in [
        ("tah", "tah:g=64,a=64,p=0.8,hi=4,lo=3,tau=2"),
        ("tah:g=32,a=32,p=0.5,hi=4,lo=3,tau=2.0", "tah:g=32,a=32,p=0.5,hi=4,lo=3,tau=2"),
        ("tah:g=128", "tah:g=128,a=128,p=0.8,hi=4,lo=3,tau=2"),
        ("tah:tau=inf,a=c", "tah:g=64,a=c,p=0.8,hi=4,lo=3,tau=inf"),
        ("fixed", "fixed:bits=6,group=64"),
        ("fixed:group=32", "fixed:bits=6,group=32"),
        ("tah:raw_below=4096", "tah:g=64,a=64,p=0.8,hi=4,lo=3,tau=2,raw_below=4096"),
        ("tah:by=even,tau=3", "tah:g=64,a=64,p=0.8,hi=4,lo=3,tau=3,by=even"),
        ("tah:by=entropy", "tah:g=64,a=64,p=0.8,hi=4,lo=3,tau=2"),
        ("tah:raw_below=0", "tah:g=64,a=64,p=0.8,hi=4,lo=3,tau=2"),
        ("fixed:raw_below=1,bits=4", "fixed:bits=4,group=64,raw_below=1"),
        ("aqsgd", "aqsgd:bits=4,group=64,keep=f32,first=f32"),
        ("aqsgd:first=bf16,bits=2", "aqsgd:bits=2,group=64,keep=f32,first=bf16"),
        ("group", "group:bits=4,group=128,quantizer=zero-aware"),
        ("group:quantizer=naive,group=2", "group:bits=4,group=2,quantizer=naive"),
        ("raw", "raw:dtype=f32"),
        ("raw:dtype=bf16", "raw:dtype=bf16"),
        ("f32", "raw:dtype=f32"),
        ("f16", "raw:dtype=f16"),
        ("bf16", "raw:dtype=bf16"),
    ] {
        assert_eq!(text.parse::<CodecSpec>().unwrap().to_string(), full);
    }
    assert_eq!("tah".parse(), Ok(CodecSpec::Tah(TahSettings::default())));
    assert_eq!("fixed".parse(), Ok(CodecSpec::Fixed(FixedSettings::default())));
    assert_eq!("group".parse(), Ok(CodecSpec::Group(GroupSettings::default())));
}

#[test]
fn a_built_codec_knows_its_spec() {
    for spec in specs() {
        let codec = spec.build().unwrap();
        assert_eq!(codec.spec(), spec);
        assert_eq!(codec.spec().to_string().parse(), Ok(spec));
    }
}

proptest! {
    #[test]
    fn text_round_trips(settings in random::tah_settings(), raw_below: usize) {
        let spec = CodecSpec::Tah(TahSettings { raw_below, ..settings });
        prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        let spec = CodecSpec::Tah(settings);
        prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        let spec = CodecSpec::Fixed(FixedSettings { raw_below, ..FixedSettings::default() });
        prop_assert_eq!(spec.to_string().parse(), Ok(spec));
    }

    #[test]
    fn no_text_panics(text in "(tah|fixed|group|aqsgd|raw|f16)?[:,=a-z0-9.-]{0,24}") {
        if let Ok(spec) = text.parse::<CodecSpec>() {
            prop_assert!(spec.build().is_ok());
        }
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    for (text, nearest) in [
        ("tahh", "did you mean `tah`"),
        ("fixd:bits=4", "did you mean `fixed`"),
        ("aq-sgd", "did you mean `aqsgd`"),
        ("aqsgd:kept=f32", "did you mean `keep`"),
        ("aqsgd:raw_below=9", "(known: bits, group, keep, first)"),
        ("group:width=4", "(known: bits, group, quantizer)"),
        ("group:quantizer=symetric", "unknown quantizer `symetric`: did you mean `symmetric`"),
        ("groups", "did you mean `group`"),
        ("float16", "did you mean `f16`"),
        ("tah:taw=2", "did you mean `tau`"),
        ("tah:high=4", "did you mean `hi`"),
        ("fixed:bit=4", "did you mean `bits`"),
        ("fixed:groups=4", "did you mean `group`"),
        ("tah:raw_bellow=4", "did you mean `raw_below`"),
        ("raw:type=f16", "did you mean `dtype`"),
        ("raw:dtype=bf61", "did you mean `bf16`"),
    ] {
        let error = error(text);
        assert!(error.contains(nearest), "{text}: {error}");
    }
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    for (text, range) in [
        ("tah:g=48", "a power of two from 8 to 1024"),
        ("tah:g=4", "a power of two from 8 to 1024"),
        ("tah:g=2048", "a power of two from 8 to 1024"),
        ("tah:g=sixty", "a power of two from 8 to 1024"),
        ("tah:a=96", "a multiple of g=64"),
        ("tah:a=0", "a multiple of g=64"),
        ("tah:a=x", "a multiple of g=64"),
        ("tah:g=32,a=2097152", "up to 1048576"),
        ("tah:p=1.01", "from 0 to 1"),
        ("tah:p=-0.1", "from 0 to 1"),
        ("tah:p=nan", "from 0 to 1"),
        ("tah:hi=9", "from 2 to 8"),
        ("tah:lo=1", "from 2 to 8"),
        ("tah:hi=-4", "from 2 to 8"),
        ("tah:hi=2,lo=3", "at least lo=3"),
        ("tah:tau=-1", "from 0 up, or inf"),
        ("tah:tau=nan", "from 0 up, or inf"),
        ("tah:by=chance", "entropy or even"),
        ("fixed:bits=1", "from 2 to 16"),
        ("fixed:bits=17", "from 2 to 16"),
        ("tah:raw_below=-1", "a whole number of values"),
        ("fixed:raw_below=4k", "a whole number of values"),
        ("fixed:group=100", "a power of two from 8 to 1024"),
        ("group:bits=1", "from 2 to 8"),
        ("group:bits=9", "from 2 to 8"),
        ("group:group=0", "from 2 to 1024"),
        ("group:group=1,bits=8", "from 2 to 1024"),
        ("group:group=2048", "from 2 to 1024"),
        ("group:group=2,bits=3", "group * bits is a multiple of 8"),
        ("group:group=129", "group * bits is a multiple of 8"),
        ("aqsgd:bits=1", "from 2 to 16"),
        ("aqsgd:group=100", "a power of two from 8 to 1024"),
        ("aqsgd:keep=f16", "f32 or bf16: what is kept grows with every difference and could overflow f16"),
        ("aqsgd:first=f16", "f32 or bf16"),
    ] {
        let error = error(text);
        assert!(error.contains(range), "{text}: {error}");
    }
}

#[test]
fn malformed_text_is_refused() {
    assert!(error("tah:").contains("key=value"));
    assert!(error("tah:g").contains("key=value"));
    assert!(error("tah:g=64,").contains("key=value"));
    assert!(error("tah:g=64,g=64").contains("twice"));
    assert!(error("f32:dtype=f32").contains("takes no settings"));
    assert!(error("").contains("unknown codec"));
    assert!(error("TAH").contains("unknown codec"));
}

#[test]
fn settings_built_by_hand_are_checked_too() {
    let settings = TahSettings { tile: 60, ..TahSettings::default() };
    assert!(CodecSpec::Tah(settings).build().is_err());
    let settings = FixedSettings { bits: 0, ..FixedSettings::default() };
    assert!(CodecSpec::Fixed(settings).build().is_err());
    let settings = GroupSettings { group: usize::MAX, ..GroupSettings::default() };
    assert!(CodecSpec::Group(settings).build().is_err());
    let settings = AqsgdSettings { keep: DType::F16, ..AqsgdSettings::default() };
    assert!(CodecSpec::Aqsgd(settings).build().is_err());
}

#[cfg(feature = "serde")]
#[test]
fn serde_uses_the_text() {
    let spec: CodecSpec = serde_json::from_str("\"tah:g=32\"").unwrap();
    assert_eq!(serde_json::to_string(&spec).unwrap(), "\"tah:g=32,a=32,p=0.8,hi=4,lo=3,tau=2\"");
    assert!(
        serde_json::from_str::<CodecSpec>("\"tah:g=33\"").unwrap_err().to_string().contains("power of two")
    );
}
