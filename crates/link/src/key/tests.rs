use std::{error::Error as _, fs};

use super::*;

#[test]
fn a_saved_key_loads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stage.key");
    let key = SecretKey::generate();
    key.save(&path).unwrap();
    assert_eq!(SecretKey::load(&path).unwrap().public(), key.public());
}

#[cfg(unix)]
#[test]
fn a_key_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stage.key");
    SecretKey::generate().save(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = SecretKey::load(&path).unwrap_err();
        assert!(matches!(error, KeyError::Exposed { mode: found, .. } if found == mode), "{error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
}

#[test]
fn an_existing_file_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stage.key");
    let first = SecretKey::generate();
    first.save(&path).unwrap();
    let error = SecretKey::generate().save(&path).unwrap_err();
    assert!(error.to_string().contains("stage.key"), "{error}");
    assert!(error.source().is_some());
    assert_eq!(SecretKey::load(&path).unwrap().public(), first.public());
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stage.key");
    let key = SecretKey::generate();
    key.save(&path).unwrap();
    let pem = fs::read(&path).unwrap();
    let label = b"-----BEGIN PRIVATE KEY-----\n".len();
    for length in 0..pem.len() - 1 {
        fs::write(&path, &pem[..length]).unwrap();
        assert!(matches!(SecretKey::load(&path), Err(KeyError::Format { .. })), "{length}");
    }
    // The public key is stored beside the secret one: a flip in either makes them disagree.
    for position in label..label + 64 {
        let mut damaged = pem.clone();
        damaged[position] = if damaged[position] == b'A' { b'B' } else { b'A' };
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(SecretKey::load(&path), Err(KeyError::Format { .. })), "{position}");
    }
    assert!(matches!(SecretKey::load(&folder.path().join("none")), Err(KeyError::Read { .. })));
}

/// The key pair of RFC 8410, section 10.3: PKCS#8 version 1, as other tools write it.
#[test]
fn a_published_key_loads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rfc8410.key");
    SecretKey::generate().save(&path).unwrap();
    let pem = "-----BEGIN PRIVATE KEY-----\n\
               MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
               -----END PRIVATE KEY-----\n";
    fs::write(&path, pem).unwrap();
    // Section 10.1: the public key of the same pair.
    let expected = "ed25519:Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=";
    assert_eq!(SecretKey::load(&path).unwrap().public().to_string(), expected);
}

#[test]
fn texts_round_trip_and_others_are_refused() {
    let key = SecretKey::generate().public();
    let text = key.to_string();
    assert_eq!(text.parse::<PublicKey>().unwrap(), key);
    assert_eq!(PublicKey::from_spki(&key.to_spki()), Some(key));
    for other in ["", "ed25519:", &text[8..], &text[..text.len() - 4], &format!("{text}AAAA")] {
        assert!(other.parse::<PublicKey>().is_err(), "{other}");
    }
}

#[test]
fn the_debug_form_shows_nothing_secret() {
    let key = SecretKey::generate();
    let shown = format!("{key:?}");
    assert_eq!(shown, format!("SecretKey {{ public: {}, .. }}", key.public()));
}
