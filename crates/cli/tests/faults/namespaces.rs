//! Stages on two machines: two network namespaces with a cable between them.

use std::fs;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use super::by_hand::ByHand;
use super::processes::Running;

/// Two network namespaces joined by a pair of virtual interfaces; gone when dropped.
struct Machines {
    names: [String; 2],
}

impl Machines {
    /// `None` where this user, or this system, cannot have them.
    fn new() -> Option<Self> {
        let id = std::process::id();
        let machines = Self { names: [format!("tw{id}a"), format!("tw{id}b")] };
        let [a, b] = &machines.names;
        let steps = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add wire type veth peer name wire netns {b}"),
            format!("-n {a} address add 10.77.0.1/24 dev wire"),
            format!("-n {b} address add 10.77.0.2/24 dev wire"),
            format!("-n {a} link set wire up"),
            format!("-n {b} link set wire up"),
        ];
        // What was made before the first failure is removed by the drop.
        steps.iter().all(|step| ip(step)).then_some(machines)
    }

    /// The same command, on machine `index`.
    fn on(&self, index: usize, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.names[index]]);
        inside.arg(command.get_program()).args(command.get_args());
        inside
    }

    /// Bytes that have left machine `index` over the cable.
    fn sent(&self, index: usize) -> u64 {
        let mut cat = Command::new("cat");
        cat.arg("/proc/net/dev");
        let table = String::from_utf8(self.on(index, &cat).output().unwrap().stdout).unwrap();
        let wire = table.lines().find_map(|line| line.trim().strip_prefix("wire:")).unwrap();
        wire.split_whitespace().nth(8).unwrap().parse().unwrap()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns delete {name}")); // one that was not made is fine
        }
    }
}

fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn stages_on_two_machines_train_together() {
    let Some(machines) = Machines::new() else {
        // Past the test harness, which would keep it to itself.
        writeln!(io::stderr(), "NOT RUN: stages in two network namespaces; it needs root and `ip`").unwrap();
        return;
    };
    let by_hand = ByHand::at(&["10.77.0.1:7000".to_owned(), "10.77.0.2:7000".to_owned()]);
    let before = [machines.sent(0), machines.sent(1)];
    let running = [0, 1].map(|stage| Running::alone(&mut machines.on(stage, &by_hand.stage(stage, &[]))));
    let reports = running.map(|stage| {
        let output = Running::output(stage);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    });
    assert_eq!(reports[0]["final_loss"], reports[1]["final_loss"]);
    for stage in [0, 1] {
        let link = &reports[stage]["links"][0];
        assert_eq!(link["from"], stage);
        let told = link["bytes"].as_u64().unwrap();
        let left = machines.sent(stage) - before[stage];
        // The cable carries headers and acknowledgements of TCP/IP besides.
        assert!(told > 10_000 && left > told && left < 2 * told, "{told} told, {left} left");
    }
    drop(machines);
    let left = fs::read_dir("/run/netns").into_iter().flatten().filter_map(Result::ok);
    let ours = format!("tw{}", std::process::id());
    assert!(!left.into_iter().any(|name| name.file_name().to_string_lossy().starts_with(&ours)));
}
