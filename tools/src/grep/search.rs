//! The search itself: one file after another in the order of their paths.

use std::{
    fs::File,
    io::{self, Read, Seek},
    path::Path,
};

use ennead_runtime::tool::ToolOutcome;
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use ignore::{
    WalkBuilder,
    overrides::{Override, OverrideBuilder},
    types::TypesBuilder,
};

use super::{
    GrepInput, Mode,
    page::{ResultPage, Totals},
};
use crate::{
    blocking::{Stop, interrupted},
    built_in::AtPath,
    globs,
    hidden::Hidden,
    output::cut_line,
    paths,
    walk::{self, Filter, IgnoreFiles, SearchRoot, VersionControl},
};

/// Characters of one line that are shown.
const MAX_LINE_CHARS: usize = 500;

/// Bytes that one line, or one file in multi-line mode, may take in memory.
const MAX_HEAP: usize = 64 << 20;

/// Searches all files of the root and formats the matches.
pub(super) fn search(call: AtPath<'_, GrepInput>) -> Result<ToolOutcome, String> {
    let AtPath { input, stop, .. } = call;
    let root = &SearchRoot::of(call.path);
    let matcher = matcher(input)?;
    let mut searcher = searcher(input);
    let hidden = Hidden::new(call.hidden);
    if !root.real.exists() {
        return Err(format!("{} does not exist.", root.named.display()));
    }
    let mut builder = builder(input, root)?;
    let filter = Filter {
        hidden,
        // They count without a repository, too; those of the person's home do not, so that a search
        // gives the same everywhere.
        ignore_files: IgnoreFiles::All,
        wanted: wanted(input, root)?,
        version_control: VersionControl::LeftOut,
    };
    let mut page = ResultPage::new(input.offset, input.head_limit);
    let counts_matches = input.only_matching && input.output_mode == Mode::Content;
    let mut totals = Totals { n_matches: counts_matches.then_some(0), ..Totals::default() };

    for entry in walk::entries(&mut builder, root, filter) {
        if stop.is_set() {
            return Ok(interrupted());
        }
        let Ok(entry) = entry else {
            totals.n_unreadable += 1;
            continue;
        };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let file = match open_text(entry.path()) {
            Ok(Some(file)) => file,
            Ok(None) => {
                totals.n_binary += 1;
                continue;
            }
            Err(_) => {
                totals.n_unreadable += 1;
                continue;
            }
        };
        let name = root.name(entry.path());
        let mut sink = FileSink {
            input,
            matcher: &matcher,
            name: &name,
            page: &mut page,
            n_lines: 0,
            n_matches: 0,
        };
        let searched = searcher.search_reader(&matcher, Stoppable { file, stop }, &mut sink);
        let (n_lines, n_matches) = (sink.n_lines, sink.n_matches);
        if stop.is_set() {
            return Ok(interrupted());
        }
        match searched {
            Ok(()) => totals.n_searched += 1,
            Err(_) => totals.n_unreadable += 1,
        }
        if n_lines == 0 {
            continue;
        }
        totals.n_files += 1;
        totals.n_lines += n_lines;
        totals.n_matches = totals.n_matches.map(|before| before + n_matches);
        match input.output_mode {
            Mode::FilesWithMatches => page.push(|| name.display().to_string()),
            Mode::Count => page.push(|| format!("{}:{n_lines}", name.display())),
            Mode::Content => {}
        }
    }
    Ok(page.finish(input.output_mode, totals))
}

fn matcher(input: &GrepInput) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(input.ignore_case).multi_line(true);
    if input.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| error.to_string())
}

fn searcher(input: &GrepInput) -> Searcher {
    let around = input.around.or(input.context);
    let lines = |own: Option<u32>| match input.output_mode {
        Mode::Content if !input.only_matching => own.or(around).unwrap_or(0) as usize,
        _ => 0,
    };
    SearcherBuilder::new()
        .multi_line(input.multiline)
        .before_context(lines(input.before))
        .after_context(lines(input.after))
        .line_number(true)
        .heap_limit(Some(MAX_HEAP))
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

fn builder(input: &GrepInput, root: &SearchRoot) -> Result<WalkBuilder, String> {
    let mut builder = WalkBuilder::new(&root.real);
    builder.hidden(false);
    if let Some(file_type) = &input.file_type {
        let mut types = TypesBuilder::new();
        types.add_defaults().select(file_type);
        builder.types(types.build().map_err(|error| error.to_string())?);
    }
    Ok(builder)
}

/// The files that the search is limited to, by their names.
fn wanted(input: &GrepInput, root: &SearchRoot) -> Result<Override, String> {
    let Some(glob) = &input.glob else { return Ok(Override::empty()) };
    globs::check(glob).map_err(|error| error.to_string())?;
    let base = if root.real.is_dir() { Some(&*root.real) } else { root.real.parent() };
    let mut wanted = OverrideBuilder::new(base.unwrap_or(Path::new("/")));
    wanted.add(glob).map_err(|error| error.to_string())?;
    wanted.build().map_err(|error| error.to_string())
}

/// Opens a file at its start; `None` if it is binary.
fn open_text(path: &Path) -> Result<Option<File>, paths::OpenError> {
    let mut file = paths::open_file(path)?;
    let mut start = Vec::with_capacity(1024);
    (&file).take(1024).read_to_end(&mut start)?;
    file.rewind()?;
    // UTF-16 is full of NULs; the searcher decodes it where a byte order mark announces it.
    let is_utf16 = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
    Ok((is_utf16 || !start.contains(&0)).then_some(file))
}

/// A file whose reading ends when the call does, also in the middle of a large file.
struct Stoppable<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            // Not `Interrupted`, which readers try again.
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

struct FileSink<'a> {
    input: &'a GrepInput,
    matcher: &'a RegexMatcher,
    name: &'a Path,
    page: &'a mut ResultPage,
    n_lines: u64,
    n_matches: u64,
}

impl FileSink<'_> {
    fn show(&mut self, separator: char, number: Option<u64>, bytes: &[u8]) {
        let (name, numbered) = (self.name, self.input.line_numbers.unwrap_or(true));
        self.page.push(|| {
            let line = String::from_utf8_lossy(bytes);
            let line = cut_line(line.trim_end_matches(['\r', '\n']), MAX_LINE_CHARS);
            match number {
                Some(number) if numbered => {
                    format!("{}{separator}{number}{separator}{line}", name.display())
                }
                _ => format!("{}{separator}{line}", name.display()),
            }
        });
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let content = self.input.output_mode == Mode::Content;
        let first = found.line_number();
        for (number, line) in (first.unwrap_or(1)..).zip(found.lines()) {
            self.n_lines += 1;
            if content && !self.input.only_matching {
                self.show(':', Some(number), line);
            }
        }
        if content && self.input.only_matching {
            let bytes = found.bytes();
            let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            self.matcher
                .find_iter(bytes, |part| {
                    let before = bytes[..part.start()].iter().filter(|b| **b == b'\n').count();
                    self.n_matches += 1;
                    self.show(':', first.map(|n| n + before as u64), &bytes[part]);
                    true
                })
                .map_err(io::Error::other)?;
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.show('-', line.line_number(), line.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.page.push(|| "--".into());
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> Result<(), io::Error> {
        Ok(())
    }
}
