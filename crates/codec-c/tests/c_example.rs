//! The example in C compiles against the header without warnings, links with the static library, and runs; bad arguments
//! are statuses.

#![expect(unsafe_code, reason = "calls what is made for C")]

use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use thinwire_codec_c::{
    CShape, thinwire_codec_free, thinwire_codec_new, thinwire_decode, thinwire_encode, thinwire_packed_size,
    thinwire_version,
};

/// The newest library beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    std::fs::read_dir(test.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| {
            let name = entry.path();
            let stem = name.file_stem().unwrap().to_string_lossy();
            stem.starts_with("libthinwire_codec_c")
                && name.extension().is_some_and(|extension| extension == "a")
        })
        .max_by_key(|entry| entry.metadata().unwrap().modified().unwrap())
        .expect("cargo builds the static library for the tests")
        .path()
}

#[test]
#[cfg(target_os = "linux")]
fn the_example_runs() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("roundtrip");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(package.join("include"))
        .arg(package.join("examples/roundtrip.c"))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("the test needs a C compiler named cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let run = Command::new(&program).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    assert!(text.contains("4096 values, 2260 bytes"), "{text}");
    assert!(text.contains("cut short: error 4, the message has 2259 bytes"), "{text}");
}

#[test]
fn bad_arguments_are_statuses() {
    let shape = CShape { samples: 1, tokens: 1, channels: 8 };
    let (mut codec, mut bytes) = (ptr::null_mut(), 0);
    let values = [1.0_f32; 8];
    let mut message = [0_u8; 64];
    // SAFETY: every pointer is null, a zero-terminated text, or to a local of the length that is passed with it.
    unsafe {
        assert_eq!(thinwire_codec_new(ptr::null(), 1, &raw mut codec), 1);
        assert_eq!(thinwire_codec_new(c"tah:taw=3".as_ptr(), 1, &raw mut codec), 2);
        assert_eq!(thinwire_codec_new(c"f32".as_ptr(), 0, &raw mut codec), 0);
        assert_eq!(thinwire_packed_size(codec, shape, 3, &raw mut bytes), 1);
        assert_eq!(thinwire_packed_size(codec, shape, 0, &raw mut bytes), 0);
        assert_eq!(bytes, 36);
        let x = values.as_ptr().cast::<c_void>();
        let mut encode =
            |x, capacity| thinwire_encode(codec, shape, 0, x, message.as_mut_ptr(), capacity, &raw mut bytes);
        assert_eq!(encode(ptr::null(), 64), 1);
        assert_eq!(encode(x.byte_add(1), 64), 1);
        assert_eq!(encode(x, 35), 3);
        assert_eq!(encode(x, 64), 0);
        assert_eq!(thinwire_decode(codec, message.as_ptr(), 36, shape, 0, ptr::null_mut()), 1);
        thinwire_codec_free(codec);
        thinwire_codec_free(ptr::null_mut());
        assert_eq!(CStr::from_ptr(thinwire_version()).to_str(), Ok(env!("CARGO_PKG_VERSION")));
    }
}
