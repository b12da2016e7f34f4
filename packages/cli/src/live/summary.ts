import { deliveryFailures, reasons, type DeliveryFailure, type Reason } from '@tutti/core'
import type { Ensemble } from '@tutti/proto'
import { missingText } from '../output/agent-lines.ts'
import { outputTail } from '../output/output-tail.ts'
import { patchOverview } from '../output/patch-overview.ts'
import { table } from '../output/table.ts'
import { safeLine } from '../output/terminal-text.ts'
import { wrap } from '../output/wrap.ts'
import { formatDuration } from '../values/duration.ts'
import { attemptLines } from './attempt-lines.ts'
import { byWhom } from './by-whom.ts'
import { checkVerdict } from './child-words.ts'
import { conflictLines } from './conflict-lines.ts'
import { ensembleResult, phaseTimes } from './ensemble-result.ts'
import { notTakenLines } from './not-taken-lines.ts'
import type { SummaryOptions } from './summary-options.ts'

const patchBounds = { files: 20, lines: 60 }

/** The end of a run for a person: phases, children, what was left out, the diff, and what to try next. */
export function renderSummary(ensemble: Ensemble, options: SummaryOptions): string[] {
  const { paint, patch, next, width } = options
  const result = ensembleResult(ensemble)
  const good = result.phase === 'COMPLETED' && result.reason === 'completed'
  const color = good && result.report.conflicts.length === 0 ? paint.green : paint.yellow
  const phase = result.phase === 'UNSPECIFIED' ? 'starting' : result.phase
  const [first = '', ...rest] = wrap(`${phase}  ${sentence(ensemble, options)}`, width)
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ['', paint.bold(title), ...lines]
  const overview = patchOverview(patch ?? new Uint8Array(), { paint, width: width - 2, ...patchBounds })
  const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`.trimEnd())
  return [
    '',
    `${color(paint.bold(phase))}${first.slice(phase.length)}`,
    ...rest,
    ...(ensemble.missing === '' ? [] : wrap(`It ${missingText(ensemble.missing)}`, width)),
    ...section(
      'Phases',
      table(Object.entries(phaseTimes(ensemble)).map(([name, ms]) => [`  ${name}`, formatDuration(ms)])),
    ),
    ...section('Agents', attemptLines(ensemble, options)),
    ...section('Result', resultLines(ensemble, options)),
    ...section('Conflicts', conflictLines(ensemble.report?.conflicts ?? [], width)),
    ...section('Equal', equalLines(ensemble)),
    ...section('Not taken', notTakenLines(ensemble, options)),
    ...section('Files', indented(overview.list)),
    ...section('Diff', indented(overview.diff)),
    ...section('Next', indented(next)),
  ]
}

function sentence(
  { reason, deliveryDetail, deliveryFailure, report }: Ensemble,
  { stoppedHere = false }: SummaryOptions,
): string {
  const words = Object.hasOwn(reasons, reason)
    ? byWhom(reasons[reason as Reason].sentence, stoppedHere)
    : safeLine(reason)
  if (deliveryDetail !== '') return `${words} ${safeLine(deliveryDetail)}`
  const failure = Object.hasOwn(deliveryFailures, deliveryFailure)
    ? ` ${deliveryFailures[deliveryFailure as DeliveryFailure]}`
    : ''
  const count = report?.conflicts.length ?? 0
  const conflicts =
    count > 0
      ? ` ${count} conflict${count === 1 ? '' : 's'}: the agents disagreed there, and not all of their work is in the result.`
      : ''
  return `${words}${failure}${conflicts}`
}

function resultLines(ensemble: Ensemble, { paint, width, checked }: SummaryOptions): string[] {
  const { synthesis, pullRequest } = ensemble
  const lines: string[] = []
  // Without a result the last one that was tried says why.
  const tried = synthesis ?? (checked?.check ? checked : undefined)
  if (tried) {
    const { check, commit } = tried
    const verdict = check
      ? `, check ${(check.exitCode === 0 ? paint.green : paint.red)(checkVerdict(check))}`
      : ''
    lines.push(
      synthesis
        ? `  ${safeLine(synthesis.strategy)} of ${synthesis.bcIds.length} → ${commit.slice(0, 12)}${verdict}`
        : `  none: the last that was tried is ${commit.slice(0, 12)}${verdict}`,
    )
    if (check && check.exitCode !== 0 && check.outputTail !== '')
      lines.push(...outputTail(check.outputTail, { width, indent: '    ' }).map(paint.dim))
  }
  if (pullRequest) {
    lines.push(
      ...wrap(
        `pull request #${pullRequest.number}: ${safeLine(pullRequest.title || ensemble.title)}`,
        width,
        '  ',
      ),
      `  branch ${safeLine(pullRequest.branch)}`,
      `  ${paint.underline(safeLine(pullRequest.url))}`,
    )
  } else if (synthesis && synthesis.branch !== '')
    lines.push(`  branch ${safeLine(synthesis.branch)}, no pull request`)
  return lines
}

const equalLines = ({ report }: Ensemble): string[] =>
  (report?.equalGroups ?? []).flatMap(({ bcIds }) =>
    bcIds.map((bcId, index) => `  ${index === 0 ? '' : '= '}${safeLine(bcId)}`),
  )
