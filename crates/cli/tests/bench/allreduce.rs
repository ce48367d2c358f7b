//! Sums over ranks: what is measured, and that it is right.

use serde_json::Value;

use super::common::thinwire;
use super::networks::can_have_networks;

/// The result of `thinwire bench allreduce --json`, which must succeed.
fn bench(options: &str) -> Value {
    let arguments = ["bench", "allreduce", "--json", "--repeats", "2"];
    let output = thinwire(arguments.into_iter().chain(options.split(' '))).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap()
}

/// Positive, and no more than a test takes.
#[track_caller]
fn assert_seconds(seconds: &Value) {
    let seconds = seconds.as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 1000.0, "{seconds}");
}

#[test]
fn every_combination_is_measured_with_the_same_bits_everywhere() {
    let report = bench("--ranks 2,3 --sizes 64KiB,100004B");
    let rows = rows(&report);
    let of = |medium: &str| rows.iter().filter(|row| row["medium"] == medium).collect::<Vec<_>>();
    let (memory, shared, loopback) = (of("memory"), of("shared"), of("loopback"));
    // Two wires without and two with three kinds of compensation each.
    assert_eq!((memory.len(), shared.len(), loopback.len(), rows.len()), (32, 32, 32, 96));
    for (here, there) in memory.iter().zip(&loopback).chain(memory.iter().zip(&shared)) {
        for same in ["ranks", "values", "wire", "compensation", "digest", "relative_error", "sent_bytes"] {
            assert_eq!(here[same], there[same], "{same}: {here} {there}");
        }
    }
    for row in rows {
        assert_eq!(row["by"], "thinwire");
        assert_eq!(row["seconds"].as_array().unwrap().len(), 2);
        for seconds in ["median_seconds", "min_seconds", "speed_over_bf16"] {
            assert_seconds(&row[seconds]);
        }
        assert_eq!(row["update_seconds"].is_f64(), row["compensation"] == "fused", "{row}");
        let [error, allowed] = ["largest_error", "allowed_error"].map(|key| row[key].as_f64().unwrap());
        assert!(error <= allowed && (allowed > 0.0), "{row}");
        assert_eq!(row["bytes"].as_u64().unwrap(), 4 * row["values"].as_u64().unwrap());
    }
    assert_eq!(memory[0]["wire"], "f32");
    let errors: Vec<f64> = memory[..8].iter().map(|row| row["relative_error"].as_f64().unwrap()).collect();
    let [f32, bf16, eight, .., four] = [0, 1, 2, 5].map(|place| errors[place]);
    assert!(f32 < bf16 && bf16 < eight && eight < four, "{errors:?}");
    // Both kinds of compensation are the same sums, and not those without.
    let digest = |place: usize| &memory[place]["digest"];
    assert_eq!(digest(6), digest(7));
    assert_ne!(digest(5), digest(6));
}

#[test]
fn a_rank_sends_what_the_wire_says() {
    let report = bench("--over memory --ranks 4 --sizes 1MiB --compensation none");
    let values = f64::from(1 << 18);
    for (row, bits) in rows(&report).iter().zip([32.0, 16.0, 8.25, 4.25]) {
        // A rank sends what three others own to them, and what it owns to three others.
        let least = 2.0 * 0.75 * values * bits / 8.0;
        let sent = row["sent_bytes"].as_f64().unwrap();
        assert!(sent >= least && sent < 1.01 * least + 1000.0, "{sent} of {least}: {row}");
    }
}

#[test]
fn people_get_a_table() {
    let arguments =
        "bench allreduce --over loopback --ranks 2 --sizes 64KiB --repeats 1 --wire bf16 --wire group";
    let output = thinwire(arguments.split(' ')).output().unwrap();
    let [text, said] = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    assert!(output.status.success(), "{said}");
    assert!(text.contains("\n2 ranks, loopback, 64KiB\n"), "{text}");
    let line = text.lines().find(|line| line.contains("bf16")).unwrap();
    assert!(line.split_whitespace().any(|cell| cell == "1.00"), "bf16 is compared with itself: {line}");
    assert_eq!(text.lines().filter(|line| line.contains("4 bits")).count(), 3, "{text}");
    assert_eq!(said.matches("2 ranks, loopback, 64KiB: thinwire, ").count(), 4, "{said}");
}

#[test]
fn links_are_held_to_their_rate() {
    if !can_have_networks("sums over slow links") {
        return;
    }
    let report =
        bench("--links 50mbit --ranks 2,3 --sizes 1MiB --wire bf16 --wire group --compensation none");
    let rates = report["links"].as_array().unwrap();
    assert_eq!(rates.len(), 2);
    for (links, ranks) in rates.iter().zip([2, 3]) {
        for when in ["before", "after"] {
            let links = links[when].as_array().unwrap();
            assert_eq!(links.len(), ranks);
            for link in links {
                // A busy machine may be slower.
                assert!(link["measured"].as_f64().unwrap() < 50e6, "{link}");
            }
        }
    }
    for row in rows(&report) {
        assert_eq!((&row["medium"], &row["rate"]), (&"links".into(), &"50mbit".into()));
        let [link, least] = ["link_seconds", "min_seconds"].map(|key| row[key].as_f64().unwrap());
        // What the buckets of a sender and of the switch let through at once, 25 kB each, is not held up.
        assert!(least > link - 2.0 * 25e3 * 8.0 / 50e6, "{row}");
    }
}

/// Whether a peer is installed or not, and whatever becomes of it, it is told of.
#[test]
fn peers_are_measured_or_said_to_be_missing() {
    let report = bench("--over loopback --ranks 3 --sizes 100004B --wire bf16 --peers gloo,mpi,mpi-ring");
    let missing = report["missing"].as_array().unwrap();
    for (peer, wires) in [("gloo", 3), ("mpi", 2), ("mpi-ring", 2)] {
        let rows: Vec<_> = rows(&report).iter().filter(|row| row["by"] == peer).collect();
        if let Some(missing) = missing.iter().find(|missing| missing["peer"] == peer) {
            assert!(missing["reason"].as_str().unwrap().len() > 10, "{missing}");
            continue;
        }
        assert_eq!(rows.len(), wires, "{peer}");
        for row in rows {
            assert_eq!((row["values"].as_u64(), row["ranks"].as_u64()), (Some(25_001), Some(3)));
            assert_seconds(&row["speed_over_bf16"]);
        }
    }
}
