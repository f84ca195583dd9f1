//! Lines in the order in which they were written, and what is missing between them.
//!
//! Each line of the writer names its number, its check sum and that of the line before it. What was
//! moved can be put back by them, and what is gone or was changed is named.

use std::collections::BTreeSet;

use super::{Report, ReportKind};
use crate::transcript::{
    read::ReadLine,
    seal::{Seal, SealLink},
};

/// A line that can be read.
pub(super) struct Placed {
    /// From 1, as in the file.
    pub(super) number: u64,
    pub(super) read: ReadLine,
}

impl Placed {
    fn seal(&self) -> Option<Seal> {
        self.read.seal
    }
}

/// Puts the lines in the order of their numbers where check sums confirm it; else they stay as they are. What was
/// written twice is there once. Lines of others stay after the line that they follow.
pub(super) fn settle(lines: Vec<Placed>, report: &mut Vec<Report>) -> Vec<Placed> {
    let mut seen: BTreeSet<(u64, SealLink, SealLink)> = BTreeSet::new();
    let mut kept: Vec<Placed> = Vec::with_capacity(lines.len());
    for line in lines {
        match line.seal() {
            Some(seal) if !seal.intact => {
                report.push(Report::at(ReportKind::Altered, line.number));
            }
            Some(seal) if !seen.insert((seal.seq, seal.prev, seal.link)) => {
                report.push(Report::at(ReportKind::DuplicateId, line.number));
                continue;
            }
            Some(_) | None => {}
        }
        kept.push(line);
    }
    let kept = in_order(kept, report);
    let mut last = 0;
    for line in &kept {
        let Some(seal) = line.seal() else { continue };
        if last + 1 < seal.seq {
            let count = seal.seq - last - 1;
            report.push(Report::counted(ReportKind::MissingLines, line.number, count));
        }
        last = last.max(seal.seq);
    }
    kept
}

fn in_order(lines: Vec<Placed>, report: &mut Vec<Report>) -> Vec<Placed> {
    let mut highest = 0;
    let mut misplaced: Option<Report> = None;
    for line in &lines {
        let Some(seal) = line.seal() else { continue };
        if seal.seq <= highest {
            let first = || Report::counted(ReportKind::Misplaced, line.number, 0);
            let count = &mut misplaced.get_or_insert_with(first).count;
            *count = count.map(|it| it + 1);
        }
        highest = highest.max(seal.seq);
    }
    let Some(mut misplaced) = misplaced else { return lines };
    // A line of others has the place of the line before it.
    let mut place = 0;
    let places = lines.iter().map(|line| {
        place = line.seal().map_or(place, |it| it.seq);
        place
    });
    let mut order: Vec<(u64, usize)> = places.zip(0..).collect();
    order.sort_unstable();
    let seals = || order.iter().filter_map(|(_, at)| lines[*at].seal());
    let is_certain = seals().zip(seals().skip(1)).all(|(before, after)| {
        before.seq < after.seq && (before.seq + 1 < after.seq || after.prev == before.link)
    });
    if !is_certain {
        report.push(misplaced);
        return lines;
    }
    misplaced.kind = ReportKind::Reordered;
    report.push(misplaced);
    let mut lines: Vec<Option<Placed>> = lines.into_iter().map(Some).collect();
    order.into_iter().filter_map(|(_, at)| lines[at].take()).collect()
}
