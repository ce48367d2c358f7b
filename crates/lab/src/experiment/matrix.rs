//! From the axes to the rows.

use std::env;
use std::path::Path;

use thinwire_data::hash::sha256_hex;
use thinwire_train::config::Config;

use super::error::ExperimentError;
use super::file::{Experiment, LinkAxis, Setting, Variant};
use super::row::{Coordinates, Row};

impl Experiment {
    /// Every row, in the order in which they are to be run: settings innermost, so that what disturbs the machine for a
    /// while disturbs alike what is compared. `overrides` come on top of the experiment's own. Each row's
    /// configuration has been checked.
    ///
    /// # Errors
    /// A configuration that is not valid, or that does not go with the experiment.
    pub fn rows(&self, overrides: &[String]) -> Result<Vec<Row>, ExperimentError> {
        let mut rows = Vec::new();
        for link in optional(&self.links) {
            for variant in optional(&self.variants) {
                for &seed in &self.lab.seeds {
                    for setting in &self.settings {
                        rows.push(self.row(link, variant, setting, seed, overrides)?);
                    }
                }
            }
        }
        Ok(rows)
    }

    /// The rows with `filter` in their names; of those that the filter leaves there is at least one.
    ///
    /// # Errors
    /// As [`Experiment::rows`]; a filter that leaves none.
    pub fn rows_like(&self, filter: &str, overrides: &[String]) -> Result<Vec<Row>, ExperimentError> {
        let mut rows = self.rows(overrides)?;
        let first = rows[0].at.to_string();
        rows.retain(|row| row.at.to_string().contains(filter));
        if rows.is_empty() {
            return Err(ExperimentError::NoSuchRow { filter: filter.to_owned(), first });
        }
        Ok(rows)
    }

    fn row(
        &self,
        link: Option<&LinkAxis>,
        variant: Option<&Variant>,
        setting: &Setting,
        seed: u64,
        overrides: &[String],
    ) -> Result<Row, ExperimentError> {
        let at = Coordinates {
            rate: link.map(|link| link.rate),
            latency: link.and_then(|link| link.latency),
            variant: variant.map(|variant| variant.name.clone()),
            setting: setting.name.clone(),
            seed,
        };
        let own = [&self.lab.set[..], variant.map_or(&[], |variant| &variant.set), &setting.set, overrides];
        let set: Vec<String> = own.concat();
        let places = ["run.dir", "run.seed"];
        if let Some(taken) =
            set.iter().find(|set| set.split_once('=').is_some_and(|(key, _)| places.contains(&key.trim())))
        {
            return Err(ExperimentError::Unfit {
                row: at.to_string(),
                found: taken.clone(),
                expected: "neither run.dir nor run.seed: lab.dir and lab.seeds are the experiment's",
            });
        }
        let invalid = |source| ExperimentError::Row { row: at.to_string(), source: Box::new(source) };
        let mut config = Config::load(&self.lab.config, &set).map_err(invalid)?;
        self.place(&mut config, &at);
        self.check(&config, &at)?;
        config.validate().map_err(invalid)?;
        let command = command(&self.lab.config, &set, at.seed);
        let written = config.to_toml().map_err(invalid)?;
        let fingerprint =
            sha256_hex(format!("{}\n{:?}\n{written}", env!("CARGO_PKG_VERSION"), self.fidelity).as_bytes());
        Ok(Row { at, config, command, fingerprint })
    }

    /// Gives the run its seed, its folder and its links.
    fn place(&self, config: &mut Config, at: &Coordinates) {
        config.run.seed = at.seed;
        config.run.dir = self.lab.dir.join("rows").join(at.folder());
        // Large data is tokenized once for all rows.
        config.data.cache.get_or_insert_with(|| self.lab.dir.join("tokens"));
        if at.rate.is_some() {
            // The links are slow themselves.
            config.pipeline.bandwidth = None;
            config.pipeline.latency = at.latency;
            for boundary in &mut config.pipeline.boundaries {
                (boundary.bandwidth, boundary.latency) = (None, None);
            }
        }
    }

    fn check(&self, config: &Config, at: &Coordinates) -> Result<(), ExperimentError> {
        let unfit =
            |found: String, expected| Err(ExperimentError::Unfit { row: at.to_string(), found, expected });
        if let Some(stage) = config.stages.first() {
            let found = format!("[[stage]] entries, the first at {}", stage.address);
            return unfit(found, "none: the lab places the stages");
        }
        if at.rate.is_some() && config.pipeline.stages < 2 {
            return unfit(
                format!("pipeline.stages = {}", config.pipeline.stages),
                "2 or more, with a [[link]]",
            );
        }
        if self.fidelity.is_some() && config.tensor_parallel.ranks > 1 {
            return unfit(
                format!("tensor_parallel.ranks = {}", config.tensor_parallel.ranks),
                "1 with [fidelity], so that boundaries alone change the gradient",
            );
        }
        if config.train.epochs.is_none() && config.train.steps <= self.lab.warmup {
            let found = format!("train.steps = {} and lab.warmup = {}", config.train.steps, self.lab.warmup);
            return unfit(found, "more steps than are left out");
        }
        Ok(())
    }
}

/// The one value of an axis that the experiment does not have is `None`.
fn optional<T>(axis: &[T]) -> Vec<Option<&T>> {
    if axis.is_empty() { vec![None] } else { axis.iter().map(Some).collect() }
}

/// As from the folder that the experiment is run from, so that a report has no path of this machine where it need not.
fn command(config: &Path, set: &[String], seed: u64) -> Vec<String> {
    let here = env::current_dir().unwrap_or_default();
    let config = config.strip_prefix(&here).unwrap_or(config).display().to_string();
    let seed = format!("run.seed={seed}");
    let settings = set.iter().chain([&seed]).flat_map(|set| ["--set", set]);
    ["thinwire", "train", &config].into_iter().chain(settings).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
