//! The network itself.

use std::ffi::OsString;

use thinwire_lab::network::{Network, NetworkError, Shape};

use super::experiment::can_have_networks;

fn run(network: &Network, stage: usize, program: &str, arguments: &str) -> String {
    let output = network.command(stage, program).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_link_of_another_rate_is_found_out() {
    if !can_have_networks("a link of the wrong rate") {
        return;
    }
    let rate = "8mbit".parse().unwrap();
    let network = Network::chain(3, rate).unwrap();
    let probe: Vec<OsString> = vec![env!("CARGO_BIN_EXE_thinwire").into(), "probe".into()];
    let rates = network.measure(&probe, 0.05).unwrap();
    let ends: Vec<_> = rates.iter().map(|rate| (rate.from, rate.to)).collect();
    assert_eq!(ends, [(0, 1), (1, 0), (1, 2), (2, 1)]);

    // The way back on the second link is slower than it is said to be.
    let wrong = Shape::of("7mbit".parse().unwrap());
    run(&network, 2, "tc", &format!("qdisc replace dev previous root {wrong}"));
    let error = network.measure(&probe, 0.05).unwrap_err();
    let NetworkError::Rate { from: 2, to: 1, measured, expected, .. } = error else { panic!("{error}") };
    assert!((measured as f64 / expected as f64 - 7.0 / 8.0).abs() < 0.03, "{measured} of {expected}");
    assert!(error.to_string().contains("from stage 2 to stage 1"), "{error}");
    network.measure(&probe, 0.2).unwrap();
}

#[test]
fn stages_have_their_neighbours_and_nothing_else() {
    if !can_have_networks("the interfaces of a network") {
        return;
    }
    let network = Network::chain(3, "8mbit".parse().unwrap()).unwrap();
    let interfaces = |stage| {
        let text = run(&network, stage, "ip", "-brief -4 address");
        let words = text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        words.map(|words| format!("{} {}", words[0].split('@').next().unwrap(), words[2])).collect::<Vec<_>>()
    };
    assert_eq!(interfaces(0), ["lo 127.0.0.1/8", "next 10.77.0.1/30"]);
    assert_eq!(interfaces(1), ["lo 127.0.0.1/8", "previous 10.77.0.2/30", "next 10.77.1.1/30"]);
    assert_eq!(interfaces(2), ["lo 127.0.0.1/8", "previous 10.77.1.2/30"]);
    assert_eq!([0, 1, 2].map(Network::address), [None, Some("10.77.0.2".into()), Some("10.77.1.2".into())]);
}

#[test]
fn a_star_holds_both_directions_of_every_link() {
    if !can_have_networks("a star with a link of the wrong rate") {
        return;
    }
    let network = Network::star(3, "8mbit".parse().unwrap()).unwrap();
    let addresses = run(&network, 1, "ip", "-brief -4 address show dev wire");
    assert!(addresses.contains(&format!(" {}/24", Network::rank_address(1))), "{addresses}");
    let probe: Vec<OsString> = vec![env!("CARGO_BIN_EXE_thinwire").into(), "probe".into()];
    let rates = network.measure(&probe, 0.05).unwrap();
    let ends: Vec<_> = rates.iter().map(|rate| (rate.from, rate.to)).collect();
    assert_eq!(ends, [(0, 1), (1, 2), (2, 0)]);

    // What the switch sends to rank 1 is slower than it is said to be; then what rank 1 sends.
    let [wrong, right] = ["7mbit", "8mbit"].map(|rate| Shape::of(rate.parse().unwrap()).to_string());
    let mut command = network.command_at_switch("tc");
    let replaced = command.args(format!("qdisc replace dev port1 root {wrong}").split(' ')).status().unwrap();
    assert!(replaced.success());
    let error = network.measure(&probe, 0.05).unwrap_err();
    assert!(matches!(error, NetworkError::Rate { from: 0, to: 1, .. }), "{error}");
    let mut command = network.command_at_switch("tc");
    command.args(format!("qdisc replace dev port1 root {right}").split(' ')).status().unwrap();
    run(&network, 1, "tc", &format!("qdisc replace dev wire root {wrong}"));
    let error = network.measure(&probe, 0.05).unwrap_err();
    assert!(matches!(error, NetworkError::Rate { from: 1, to: 2, .. }), "{error}");
}
