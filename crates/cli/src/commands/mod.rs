//! The subcommands, one module each.

use clap::Subcommand;

use crate::error::CommandError;
use crate::output::Output;

/// Declares the modules, their arguments as variants of [`Command`], and the way from one to the other. A
/// module has a type of the variant's name that derives [`clap::Args`] and has `run(self, Output) ->
/// Result<(), CommandError>`.
macro_rules! commands {
    ($($(#[$attribute:meta])* $module:ident: $name:ident),+ $(,)?) => {
        $(mod $module;)+

        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$attribute])* $name($module::$name)),+
        }

        impl Command {
            pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
                match self {
                    $(Self::$name(command) => command.run(output)),+
                }
            }
        }
    };
}

commands! {
    train: Train,
    stage: Stage,
    eval: Eval,
    generate: Generate,
    fetch: Fetch,
    export: Export,
    codec: Codec,
    bench: Bench,
    lab: Lab,
    plan: Plan,
    inspect: Inspect,
    key: Key,
    #[command(hide = true)]
    probe: Probe,
}
