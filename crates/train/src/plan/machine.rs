//! The machines of a plan: this one, and others that a file describes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::quantity::{BitRate, ByteRate, Bytes, OperationRate, Quantity, Seconds};

/// Share of its peak that an accelerator reaches in training, where the file does not say.
const EFFICIENCY: f64 = 0.4;

/// Operations that a machine does in the time of one byte to or from its memory, where the file does not say.
const OPERATIONS_A_BYTE: f64 = 100.0;

/// A file that is longer describes no machines.
const LONGEST_FILE: u64 = 1 << 20;

/// A stage's machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// What it is called.
    pub name: String,
    /// How fast it computes.
    pub speed: Speed,
    /// Bytes of memory, where known.
    pub memory: Option<f64>,
}

/// How fast a machine computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// So many times as fast as this one, which is measured.
    Relative(f64),
    /// By the arithmetic of the units.
    Flops {
        /// Operations a second that it reaches.
        reached: f64,
        /// Bytes a second to and from its memory, which hold up the optimizer.
        memory: f64,
    },
}

/// A link between machines, alike in both directions unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSpeed {
    /// Bits a second of the activations' direction.
    pub forward: f64,
    /// Bits a second of the gradients' direction.
    pub backward: f64,
    /// Seconds one way.
    pub latency: f64,
}

/// Machines in the order of their stages, and the links between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machines {
    /// One for each stage; none where all stages share this machine.
    pub machines: Vec<Machine>,
    /// One between each two; none where the configuration's are meant.
    pub links: Vec<LinkSpeed>,
}

/// Why a file describes no machines for a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachinesError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is too long.
    #[error("expected at most {LONGEST_FILE} bytes of machines")]
    TooLong,
    /// It is not TOML, or has other keys or values.
    #[error("not a file of machines: {0}")]
    Syntax(String),
    /// It has no entry.
    #[error("expected [[machine]] or [[link]] entries, found none")]
    Empty,
    /// Something is not possible.
    #[error("{place}: expected {expected}")]
    Value {
        /// The entry, such as `machine[1].speed`.
        place: String,
        /// What is possible.
        expected: String,
    },
    /// There is not one for each stage.
    #[error("expected {expected} [[{what}]] entries for {stages} stages, found {found}")]
    Count {
        /// `machine` or `link`.
        what: &'static str,
        /// As many as there should be.
        expected: usize,
        /// As many as there are.
        found: usize,
        /// Stages of the run.
        stages: usize,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entries {
    #[serde(default)]
    machine: Vec<MachineEntry>,
    #[serde(default)]
    link: Vec<LinkEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineEntry {
    name: String,
    speed: Option<f64>,
    flops: Option<Quantity<OperationRate>>,
    efficiency: Option<f64>,
    memory_rate: Option<Quantity<ByteRate>>,
    memory: Option<Quantity<Bytes>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkEntry {
    rate: Quantity<BitRate>,
    back: Option<Quantity<BitRate>>,
    latency: Option<Quantity<Seconds>>,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self { name: "this machine".to_owned(), speed: Speed::Relative(1.0), memory: None }
    }
}

impl Machines {
    /// Reads the file at `path` for a run of `stages` stages.
    ///
    /// # Errors
    /// [`MachinesError`]
    pub fn load(path: &Path, stages: usize) -> Result<Self, MachinesError> {
        let read = |source| MachinesError::Read { path: path.into(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(read)?;
        file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(read)?;
        Self::parse(&text, stages)
    }

    /// As [`Machines::load`], from the text itself.
    ///
    /// # Errors
    /// As [`Machines::load`], but for reading.
    pub fn parse(text: &str, stages: usize) -> Result<Self, MachinesError> {
        if text.len() as u64 > LONGEST_FILE {
            return Err(MachinesError::TooLong);
        }
        let entries: Entries = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            let at = line.map_or_else(String::new, |line| format!(" (line {line})"));
            MachinesError::Syntax(format!("{}{at}", error.message()))
        })?;
        let count = |what, expected, found| {
            if found == expected {
                Ok(())
            } else {
                Err(MachinesError::Count { what, expected, found, stages })
            }
        };
        if entries.machine.is_empty() && entries.link.is_empty() {
            return Err(MachinesError::Empty);
        }
        if !entries.machine.is_empty() {
            count("machine", stages, entries.machine.len())?;
        }
        if !entries.link.is_empty() {
            count("link", stages.saturating_sub(1), entries.link.len())?;
        }
        let machines = entries.machine.into_iter().enumerate().map(|(at, entry)| entry.check(at));
        let links = entries.link.into_iter().enumerate().map(|(at, entry)| entry.check(at));
        Ok(Self { machines: machines.collect::<Result<_, _>>()?, links: links.collect::<Result<_, _>>()? })
    }
}

fn wrong<T>(place: String, expected: &str) -> Result<T, MachinesError> {
    Err(MachinesError::Value { place, expected: expected.to_owned() })
}

impl MachineEntry {
    fn check(self, at: usize) -> Result<Machine, MachinesError> {
        let place = |key: &str| format!("machine[{at}].{key}");
        let efficiency = self.efficiency.unwrap_or(EFFICIENCY);
        if !(efficiency > 0.0 && efficiency <= 1.0) {
            return wrong(place("efficiency"), "a share above 0 and at most 1");
        }
        let speed = match (self.speed, self.flops) {
            (Some(speed), None) if (1e-6..=1e6).contains(&speed) => Speed::Relative(speed),
            (Some(_), None) => return wrong(place("speed"), "a factor from 1e-6 to 1e6"),
            (None, Some(flops)) if flops.value() > 0.0 => {
                let memory = self.memory_rate.map_or(flops.value() / OPERATIONS_A_BYTE, Quantity::value);
                if memory <= 0.0 {
                    return wrong(place("memory_rate"), "bytes a second above 0");
                }
                Speed::Flops { reached: flops.value() * efficiency, memory }
            }
            (None, Some(_)) => return wrong(place("flops"), "operations a second above 0"),
            _ => return wrong(format!("machine[{at}]"), "either `speed` or `flops`"),
        };
        let only_with_flops = self.efficiency.is_some() || self.memory_rate.is_some();
        if only_with_flops && matches!(speed, Speed::Relative(_)) {
            return wrong(format!("machine[{at}]"), "`efficiency` and `memory_rate` beside `flops` alone");
        }
        Ok(Machine { name: self.name, speed, memory: self.memory.map(Quantity::value) })
    }
}

impl LinkEntry {
    fn check(self, at: usize) -> Result<LinkSpeed, MachinesError> {
        let (forward, latency) = (self.rate.value(), self.latency.map_or(0.0, Quantity::value));
        let backward = self.back.map_or(forward, Quantity::value);
        if forward < 1.0 || backward < 1.0 {
            return wrong(format!("link[{at}]"), "at least 1 bit/s in either direction");
        }
        if latency > 3600.0 {
            return wrong(format!("link[{at}].latency"), "at most an hour");
        }
        Ok(LinkSpeed { forward, backward, latency })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_and_links_are_read() {
        let text = r#"
            [[machine]]
            name = "a"
            flops = "20 TFLOP/s"
            memory = "24GB"
            [[machine]]
            name = "b"
            speed = 3.0
            [[link]]
            rate = "100 Mbit/s"
            back = "20 Mbit/s"
            latency = "20 ms"
        "#;
        let Machines { machines, links } = Machines::parse(text, 2).unwrap();
        let a = Speed::Flops { reached: 8e12, memory: 2e11 };
        assert_eq!(machines[0], Machine { name: "a".into(), speed: a, memory: Some(24e9) });
        assert_eq!(machines[1], Machine { name: "b".into(), speed: Speed::Relative(3.0), memory: None });
        assert_eq!(links, [LinkSpeed { forward: 1e8, backward: 2e7, latency: 0.02 }]);
        let alone = Machines::parse("[[link]]\nrate = '1 Gbit/s'", 2).unwrap();
        let link = LinkSpeed { forward: 1e9, backward: 1e9, latency: 0.0 };
        assert_eq!(
            alone,
            Machines { machines: vec![], links: vec![link] },
            "between processes of this machine"
        );
    }

    #[test]
    fn hostile_files_are_refused_with_the_place() {
        let two =
            |entry: &str| format!("[[machine]]\nname = 'a'\nspeed = 1.0\n[[machine]]\nname = 'b'\n{entry}\n");
        let link = |entry: &str| format!("{}[[link]]\n{entry}\n", two("speed = 1.0"));
        for (text, error) in [
            (String::new(), "expected [[machine]] or [[link]] entries, found none"),
            (two(""), "machine[1]: expected either `speed` or `flops`"),
            (two("speed = 1.0\nflops = '1 TFLOP/s'"), "machine[1]: expected either `speed` or `flops`"),
            (two("speed = 0.0"), "machine[1].speed: expected a factor from 1e-6 to 1e6"),
            (two("speed = nan"), "machine[1].speed: expected a factor from 1e-6 to 1e6"),
            (two("speed = -1.0"), "machine[1].speed: expected a factor from 1e-6 to 1e6"),
            (two("speed = inf"), "machine[1].speed: expected a factor from 1e-6 to 1e6"),
            (two("flops = '0 TFLOP/s'"), "machine[1].flops: expected operations a second above 0"),
            (
                two("flops = '1 TFLOP/s'\nefficiency = 1.5"),
                "machine[1].efficiency: expected a share above 0 and at most 1",
            ),
            (
                two("flops = '1 TFLOP/s'\nmemory_rate = '0 GB/s'"),
                "machine[1].memory_rate: expected bytes a second above 0",
            ),
            (
                two("speed = 1.0\nefficiency = 0.5"),
                "machine[1]: expected `efficiency` and `memory_rate` beside `flops` alone",
            ),
            (link("rate = '0 Mbit/s'"), "link[0]: expected at least 1 bit/s in either direction"),
            (link("rate = '1 Mbit/s'\nlatency = '2000000 s'"), "link[0].latency: expected at most an hour"),
            (
                format!("{}[[link]]\nrate = '1 bit/s'\n", link("rate = '1 bit/s'")),
                "expected 1 [[link]] entries for 2 stages, found 2",
            ),
        ] {
            assert_eq!(Machines::parse(&text, 2).unwrap_err().to_string(), error, "{text}");
        }
        for text in [
            two("speed = 'fast'"),
            two("speed = 1.0\ncolour = 'red'"),
            two("flops = '-1 TFLOP/s'"),
            two("flops = 20"),
            two("speed = 1.0\nmemory = '1e99999GB'"),
            link("rate = '1 Mbit/s'\nlatency = '-1 ms'"),
            "machine = 3".to_owned(),
            "[[machine]".to_owned(),
        ] {
            let error = Machines::parse(&text, 2).unwrap_err();
            assert!(matches!(error, MachinesError::Syntax(_)), "{text}: {error}");
        }
        let long = "#".repeat(LONGEST_FILE as usize + 1);
        assert!(matches!(Machines::parse(&long, 2), Err(MachinesError::TooLong)));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Machines::load(Path::new("/no/machines.toml"), 1).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /no/machines.toml");
    }
}
