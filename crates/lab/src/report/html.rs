//! The report as one HTML page that needs nothing else.

use std::fmt::Write as _;

use super::Report;
use super::plot::Plot;
use super::table::Table;

/// Dark viewers get other inks for the pictures' attributes, which style sheets outrank.
const STYLE: &str = "
:root { color-scheme: light dark; --ink: #222; --soft: #666; --line: #ddd; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a0a0a0; --line: #3a3d42; --page: #16181c; }
  svg [fill='#FFFFFF'] { fill: #16181c; } svg [fill='#222222'] { fill: #e6e6e6; }
  svg [stroke='#222222'] { stroke: #a0a0a0; } svg [stroke='#DDDDDD'] { stroke: #3a3d42; }
  svg [stroke='#FFFFFF'] { stroke: #16181c; }
}
body { font: 16px/1.5 sans-serif; color: var(--ink); background: var(--page); max-width: 960px; margin: 2em auto;
  padding: 0 1em; }
figure { margin: 1.5em 0; } figcaption { color: var(--soft); } svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2em .8em .2em 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th.name, td.name { text-align: left; } pre { overflow-x: auto; border: 1px solid var(--line); padding: .8em; }
";

impl Report {
    pub(super) fn to_html(&self, plots: &[Plot]) -> String {
        let mut page = String::new();
        let title = escape(&self.title);
        let _ = write!(
            page,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        ); // writing to a string cannot fail
        page += &self.summary();
        for plot in plots {
            let caption = escape(&plot.caption);
            let svg = plot.svg.trim();
            let _ = writeln!(page, "<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>");
        }
        for table in Table::all(self) {
            page += &table.to_html();
        }
        page += &self.origin();
        page + "</body>\n</html>\n"
    }

    fn summary(&self) -> String {
        let failed = self.failed().count();
        let failed = if failed == 0 { String::new() } else { format!(", of which {failed} failed") };
        let over: Vec<String> = self.references().map(|name| escape(name)).collect();
        format!(
            "<p>{} rows{failed}. Speed-ups are over {}, losses against {}, each of the same link, variant and seed. The \
             first {} steps of each run are in no figure of speed.</p>\n",
            self.rows.len(),
            over.join(" and "),
            escape(&self.reference),
            self.warmup
        )
    }

    /// How it was made, and how it is made again.
    fn origin(&self) -> String {
        let commands: Vec<String> = self.rows.iter().map(|row| row.command.join(" ")).collect();
        format!(
            "<h2>How it was made</h2>\n<p>Thinwire {}, by</p>\n<pre>{}</pre>\n<p>with</p>\n<pre>{}</pre>\n<p>The run of \
             each row by itself, without its network:</p>\n<pre>{}</pre>\n",
            escape(&self.version),
            escape(&self.command),
            escape(&self.experiment),
            escape(&commands.join("\n"))
        )
    }
}

impl Table {
    fn to_html(&self) -> String {
        let line = |tag: &str, cells: &[String]| {
            let cells = cells.iter().enumerate().map(|(column, cell)| {
                let class = if column < self.names { " class=\"name\"" } else { "" };
                format!("<{tag}{class}>{}</{tag}>", escape(cell))
            });
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let rows: String = self.rows.iter().map(|row| line("td", row)).collect();
        let header = line("th", &self.header);
        format!(
            "<h2>{}</h2>\n<div class=\"wide\"><table>\n{header}{rows}</table></div>\n",
            escape(self.title)
        )
    }
}

/// Text within an element; control characters have no place in a page.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
