//! A plan as text.

use std::fmt;

use thinwire_train::plan::{LinkPlan, Plan, Proposal, RateRow, StagePlan};

use super::Report;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, micro_batches, micro_batch, sequence, plan } = self;
        let Plan { threads, slowdown, wake_seconds, step_seconds, tokens_per_second, bottleneck, .. } = plan;
        writeln!(
            f,
            "{}: {micro_batches} micro-batches of {micro_batch} x {sequence} tokens a step",
            config.display()
        )?;
        write!(f, "{tokens_per_second:.0} tokens/s, {step_seconds:.3} s a step; {threads} threads on each stage")?;
        if *slowdown > 1.0 {
            write!(f, ", {slowdown:.2} times slower beside each other, {:.1} ms to wake up", 1e3 * wake_seconds)?;
        }
        write!(f, "\nbottleneck: {bottleneck}")?;
        write_stages(f, &plan.stages)?;
        if !plan.links.is_empty() {
            write_links(f, &plan.links)?;
            write_rates(f, &plan.rates)?;
        }
        plan.proposals.as_ref().map_or(Ok(()), |proposals| write_proposals(f, proposals))
    }
}

fn write_stages(f: &mut fmt::Formatter<'_>, stages: &[StagePlan]) -> fmt::Result {
    f.write_str("\n\nMilliseconds of a micro-batch, and of the update after a step; memory in GB:\n")?;
    write!(f, "{:<6}{:>10}{:>10}{:>10}{:>8}", "stage", "forward", "backward", "update", "busy")?;
    write!(f, "{:>10}{:>10}{:>10}{:>10}  units, machine", "model", "passes", "messages", "all")?;
    for (stage, plan) in stages.iter().enumerate() {
        let ms = |seconds: f64| 1e3 * seconds;
        let gb = |bytes: u64| bytes as f64 / 1e9;
        let memory = &plan.memory;
        write!(f, "\n{stage:<6}{:>10.2}{:>10.2}{:>10.2}", ms(plan.forward), ms(plan.backward), ms(plan.update))?;
        write!(f, "{:>6.0} %", 100.0 * plan.busy)?;
        write!(f, "{:>10.3}", gb(memory.parameters + memory.gradients + memory.moments))?;
        write!(f, "{:>10.3}{:>10.3}", gb(memory.activations + memory.scratch), gb(memory.messages))?;
        write!(f, "{:>10.3}  {}, {}", gb(plan.total_memory), plan.units, plan.machine)?;
    }
    for (stage, plan) in stages.iter().enumerate() {
        if let (Some(lacks), Some(there)) = (plan.lacks, plan.available_memory) {
            let [all, there, lacks] = [plan.total_memory, there, lacks].map(|bytes| bytes as f64 / 1e9);
            write!(f, "\nstage {stage} does not fit: it takes {all:.2} GB of {there:.2}, {lacks:.2} GB are missing")?;
        }
    }
    Ok(())
}

fn write_links(f: &mut fmt::Formatter<'_>, links: &[LinkPlan]) -> fmt::Result {
    f.write_str("\n\nShare of a step that a link carries bytes, its sender encodes, its receiver decodes:\n")?;
    write!(f, "{:<6}{:<10}{:>12}{:>8}{:>8}{:>8}  codec", "link", "", "bytes", "busy", "encode", "decode")?;
    for link in links {
        let name = format!("{}-{}", link.from, link.to);
        write!(f, "\n{name:<6}{:<10}{:>12}", link.direction.name(), link.bytes)?;
        for share in [link.busy, link.encoding, link.decoding] {
            write!(f, "{:>6.0} %", 100.0 * share)?;
        }
        write!(f, "  {}", link.codec)?;
    }
    Ok(())
}

fn write_rates(f: &mut fmt::Formatter<'_>, rates: &[RateRow]) -> fmt::Result {
    f.write_str("\n\nTokens a second with every link at a rate:\n")?;
    write!(f, "{:<12}{:>10}{:>10}{:>12}{:>10}  bottleneck", "rate", "f32", "bf16", "configured", "speed-up")?;
    for row in rates {
        let rate = rate(row.rate);
        write!(f, "\n{rate:<12}{:>10.0}{:>10.0}{:>12.0}", row.f32, row.bf16, row.configured)?;
        write!(f, "{:>9.2}x  {}", row.speedup, row.bottleneck.resource)?;
    }
    Ok(())
}

fn write_proposals(f: &mut fmt::Formatter<'_>, proposals: &[Proposal]) -> fmt::Result {
    if proposals.is_empty() {
        return f.write_str("\n\nNo change that was tried makes it faster.");
    }
    f.write_str("\n\nEach of these alone:")?;
    for proposal in proposals {
        let Proposal { what, set, changes_training, tokens_per_second, gain, largest_memory, fits } = proposal;
        let gb = *largest_memory as f64 / 1e9;
        write!(f, "\n{what}: {tokens_per_second:.0} tokens/s ({:+.0} %), {gb:.2} GB on the largest stage", 100.0 * gain)?;
        for setting in set {
            write!(f, " --set '{setting}'")?;
        }
        if *changes_training {
            f.write_str("; changes what is sent, and with it what is trained")?;
        }
        if !fits {
            f.write_str("; does not fit")?;
        }
    }
    Ok(())
}

/// `100 Mbit/s`, in the largest unit that leaves a whole number.
fn rate(bits: u64) -> String {
    let units = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1000, "kbit/s")];
    match units.into_iter().find(|(unit, _)| bits.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bits / unit),
        None => format!("{bits} bit/s"),
    }
}
