//! Data on standard output: tables for people, JSON lines for programs.

use std::io::{self, BufWriter, ErrorKind, Stdout, Write};

use anyhow::Context;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::args::OutputArgs;
use crate::exit::Failure;
use crate::stderr::{colours_on, harmless};

/// Where a command's data goes.
pub(crate) struct Output {
    json: bool,
    bold: bool,
    stdout: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new(args: &OutputArgs) -> Self {
        let stdout = io::stdout();
        Self { json: args.json, bold: colours_on(&stdout), stdout: BufWriter::new(stdout) }
    }

    /// Whether to write JSON instead of tables.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let line = serde_json::to_string(value).context("cannot write the result as JSON")?;
        self.line(&line)
    }

    /// Writes a line as it is.
    pub(crate) fn line(&mut self, line: &str) -> anyhow::Result<()> {
        written(writeln!(self.stdout, "{line}"))
    }

    /// Writes a table. Control characters in cells are escaped.
    pub(crate) fn table<const COLUMNS: usize>(
        &mut self,
        head: [&str; COLUMNS],
        rows: &[[String; COLUMNS]],
    ) -> anyhow::Result<()> {
        let rows: Vec<[String; COLUMNS]> =
            rows.iter().map(|row| row.each_ref().map(|cell| harmless(cell))).collect();
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            let cells = rows.iter().map(|row| row[column].width());
            cells.chain([head[column].width()]).max().unwrap_or(0)
        });
        let line = |cells: [&str; COLUMNS]| {
            let padded = cells
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width()))));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        match self.bold {
            true => self.line(&format!("\u{1b}[1m{}\u{1b}[0m", line(head)))?,
            false => self.line(&line(head))?,
        }
        rows.iter().try_for_each(|row| self.line(&line(row.each_ref().map(String::as_str))))
    }

    /// Flushes at the end of a command, so that an error of the last write is not lost.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        written(self.stdout.flush())
    }

    /// Flushes what was written so far.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        written(self.stdout.flush())
    }
}

/// Turns a broken pipe into [`Failure::Closed`], which exits without a message: a reader such as
/// `head` closes the pipe when it has enough.
pub(crate) fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::Closed.into()),
        other => other.context("cannot write to standard output"),
    }
}
