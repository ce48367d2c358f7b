use half::f16;

use super::*;

const DICT: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";

/// A file with this version, dictionary and data.
fn file(version: u8, dict: &str, data: &[u8]) -> Vec<u8> {
    let length = dict.len() as u32;
    let mut bytes = [MAGIC, &[version, 0]].concat();
    match version {
        1 => bytes.extend((length as u16).to_le_bytes()),
        _ => bytes.extend(length.to_le_bytes()),
    }
    bytes.extend(dict.bytes());
    bytes.extend(data);
    bytes
}

fn tensor(dims: &[usize], values: Values) -> Tensor {
    Tensor { dims: dims.to_vec(), values }
}

#[test]
fn every_version_and_spelling_is_read() {
    let data = [1f32.to_le_bytes(), (-2f32).to_le_bytes()].concat();
    let expected = tensor(&[2, 1], Values::F32(vec![1.0, -2.0]));
    for dict in [
        DICT,
        "{\"shape\":(2,1),\"fortran_order\":False,\"descr\":\"<f4\"}   \n",
        " { 'descr' : '<f4' , 'shape' : ( 2 , 1 , ) , 'fortran_order' : False , } ",
    ] {
        for version in [1, 2, 3] {
            assert_eq!(parse_tensor(&file(version, dict, &data)).as_ref(), Ok(&expected), "{dict}");
        }
    }
}

#[test]
fn written_files_read_back() {
    for tensor in [
        tensor(&[], Values::F32(vec![0.1])),
        tensor(&[3], Values::F16([1.0, f32::MAX, -0.0].map(f16::from_f32).to_vec())),
        tensor(&[2, 0, 5], Values::F32(vec![])),
        tensor(&[1; 40], Values::F32(vec![7.0])),
    ] {
        let bytes = to_bytes(&tensor, Path::new("x.npy")).unwrap();
        assert_eq!(parse_tensor(&bytes), Ok(tensor));
        let header = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        assert_eq!(header % ALIGNMENT, 0);
    }
}

/// The bytes that `NumPy` 2 writes for `numpy.save(path, numpy.zeros((3,), '<f2'))`.
#[test]
fn the_header_is_numpys() {
    let mut expected =
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }".to_vec();
    expected.resize(127, b' ');
    expected.extend(b"\n\0\0\0\0\0\0");
    let zeros = tensor(&[3], Values::F16(vec![f16::ZERO; 3]));
    assert_eq!(to_bytes(&zeros, Path::new("x.npy")).unwrap(), expected);
}

#[test]
fn every_truncation_is_refused() {
    let bytes = file(1, DICT, &[0; 8]);
    assert!(parse_tensor(&bytes).is_ok());
    for length in 0..bytes.len() {
        assert!(parse_tensor(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(parse_tensor(&[&bytes[..], &[0]].concat()).is_err(), "a byte too many");
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    for (dict, reason) in [
        (&DICT.replace("<f4", "<f8")[..], "values of type \"<f8\": expected '<f4' or '<f2'"),
        (&DICT.replace("<f4", ">f4"), "values of type \">f4\""),
        (&DICT.replace("False", "True"), "Fortran order"),
        (&DICT.replace("False", "0"), "expected True or False"),
        (&DICT.replace("'descr': '<f4', ", ""), "the header has no 'descr'"),
        (&DICT.replace("'shape': (2, 1), ", ""), "the header has no 'shape'"),
        (&DICT.replace("shape", "shapes"), "expected 'descr', 'fortran_order' or 'shape'"),
        (&DICT.replace("'<f4'", "[('a', '<f4')]"), "expected a string"),
        (&DICT.replace("(2, 1)", "(2, -1)"), "expected an extent"),
        (&DICT.replace("(2, 1)", "(2 1)"), "expected `,` or `)`"),
        (&DICT.replace("(2, 1)", "(99999999999999999999,)"), "expected an extent"),
        (&DICT.replace("(2, 1)", "(4294967296, 4294967296)"), "8 bytes of data do not fit shape"),
        (&DICT.replace("(2, 1)", "(3, 1)"), "8 bytes of data do not fit shape [3, 1] of \"<f4\""),
        (&format!("{DICT} x"), "expected nothing but spaces"),
        ("", "expected `{`"),
        ("{'descr", "expected the end of the string"),
    ] {
        let error = parse_tensor(&file(1, dict, &[0; 8])).unwrap_err().to_string();
        assert!(error.contains(reason), "{dict}: {error}");
    }
    assert_eq!(parse_tensor(b"PK\x03\x04"), Err(NpyError::Magic));
    assert_eq!(parse_tensor(&file(4, DICT, &[0; 8])), Err(NpyError::Version { major: 4, minor: 0 }));
}
