//! Relative links in Markdown lead to a file of the repository.

use super::Finding;
use super::files::Files;

pub(super) fn find(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.with_extension("md") {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut in_code = false;
        for (number, line) in file.lines() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            } else if !in_code {
                let broken =
                    targets(&outside_code(line)).into_iter().filter(|target| !leads(files, folder, target));
                let message = |target| format!("the link `{target}` leads to no file");
                findings.extend(broken.map(|target| Finding::new(&file.path, number, message(target))));
            }
        }
    }
    findings
}

/// The line without its `code spans`.
fn outside_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// What the line's links point at: `[text](target "title")`, `[name]: target`, `src="target"`, `href="target"`.
fn targets(line: &str) -> Vec<String> {
    let after = |mark: &str, ends: &[char]| -> Vec<String> {
        let rests = line.split(mark).skip(1);
        rests.map(|rest| rest.split(ends).next().unwrap_or(rest).to_owned()).collect()
    };
    let mut targets = after("](", &[')', ' ']);
    targets.extend(after("src=\"", &['"']));
    targets.extend(after("href=\"", &['"']));
    if let Some((_, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        targets.extend(rest.split_whitespace().next().map(str::to_owned));
    }
    targets
}

/// Whether `target`, seen from `folder`, is outside the repository's care or a file in it.
fn leads(files: &Files, folder: &str, target: &str) -> bool {
    let is_address = target.contains("://") || target.starts_with("mailto:");
    let path = target.split(['#', '?']).next().unwrap_or(target);
    is_address || path.is_empty() || resolve(folder, path).is_some_and(|path| files.exists(&path))
}

/// `path` from the root instead of from `folder`; nothing if it is absolute or climbs above the root.
fn resolve(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead() {
        let text = "\
[format](format.md#header), [root](../README.md), [folder](../data), [top](#top), ![plot](./bench/plot.svg \"loss\")
[web](https://example.org/none.md) and <img src=\"bench/plot.svg\">, `[code](none.md)`

```
[fenced](none.md)
```
[name]: format.md
";
        let files = Files::of([
            ("docs/a.md", text),
            ("docs/format.md", ""),
            ("README.md", "[docs](docs/)"),
            ("data/x.txt", ""),
            ("docs/bench/plot.svg", ""),
        ]);
        assert_eq!(find(&files), []);
    }

    #[test]
    fn links_that_do_not() {
        let text = "\
[gone](none.md) and [there](a.md)
![plot](bench/none.svg)
[name]: Format.md
<a href=\"none.html\">
[out](../../README.md) [absolute](/docs/a.md)
";
        let files = Files::of([("docs/a.md", text), ("docs/format.md", ""), ("README.md", "")]);
        let lines: Vec<usize> = find(&files).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5, 5]);
        assert_eq!(find(&files)[0].to_string(), "docs/a.md:1: the link `none.md` leads to no file");
    }
}
