import { deliveryFailures, reasons, type DeliveryFailure, type Reason } from '@tutti/core'
import type { Ensemble } from '@tutti/proto'
import type { Palette } from '../output/output.ts'
import { renderPatch, type Patch } from '../output/patch.ts'
import { lastLine, safeLine, safeText } from '../output/terminal-text.ts'
import { table, truncate } from '../output/table.ts'
import { formatDuration } from '../values/duration.ts'
import { stateOf } from './child-words.ts'
import { ensembleResult, phaseTimes } from './ensemble-result.ts'
import { countFiles } from './plain-lines.ts'

export interface SummaryOptions {
  readonly paint: Palette
  /** The pull request's or result's patch, when there is one. */
  readonly patch?: Patch | undefined
  /** Lines of the patch that are shown. */
  readonly patchLines: number
  /** Commands and links, most useful first. */
  readonly next: readonly string[]
}

/** The end of a run for a person: phases, children, what was left out, the diff, and what to try next. */
export function renderSummary(
  ensemble: Ensemble,
  { paint, patch, patchLines, next }: SummaryOptions,
): string[] {
  const result = ensembleResult(ensemble)
  const good = result.phase === 'COMPLETED' && result.reason === 'completed'
  const lines = [
    '',
    `${(good ? paint.green : paint.yellow)(paint.bold(result.phase))}  ${sentence(ensemble)}`,
    ...section('Phases', paint),
    ...table(Object.entries(phaseTimes(ensemble)).map(([name, ms]) => [`  ${name}`, formatDuration(ms)])),
    ...section('Agents', paint),
    ...agentRows(ensemble, paint),
    ...resultLines(ensemble, paint),
    ...conflictLines(ensemble, paint),
  ]
  if (patch !== undefined && patch.bytes.length > 0) {
    const { lines: shown, left } = renderPatch(patch, paint, patchLines)
    lines.push(...section('Diff', paint), ...shown.map((line) => `  ${line}`))
    if (left > 0) lines.push(paint.dim(`  … ${left} more lines`))
  }
  if (next.length > 0) lines.push(...section('Next', paint), ...next.map((line) => `  ${line}`))
  return lines
}

const section = (title: string, paint: Palette): string[] => ['', paint.bold(title)]

function sentence(ensemble: Ensemble): string {
  const { reason, deliveryFailure } = ensemble
  const words = Object.hasOwn(reasons, reason) ? reasons[reason as Reason].sentence : safeLine(reason)
  const failure = Object.hasOwn(deliveryFailures, deliveryFailure)
    ? ` ${deliveryFailures[deliveryFailure as DeliveryFailure]}`
    : ''
  return `${words}${failure}`
}

function agentRows(ensemble: Ensemble, paint: Palette): string[] {
  const included = new Set(ensemble.synthesis?.bcIds)
  const rows = ensemble.attempts.map((attempt, index) => {
    const code = attempt.check?.exitCode
    const check =
      code === undefined ? '' : code === 0 ? paint.green('check passed') : paint.red(`check failed (${code})`)
    return [
      `  ${index + 1}`,
      safeLine(attempt.bcId),
      safeLine(attempt.reason === '' ? stateOf(attempt).word : attempt.reason.replaceAll('_', ' ')),
      countFiles(attempt.filesChanged),
      check,
      included.has(attempt.bcId)
        ? paint.green('in the result')
        : ensemble.synthesis
          ? paint.dim('left out')
          : '',
      truncate(lastLine(attempt.summary), 60),
    ]
  })
  return table(rows)
}

function resultLines(ensemble: Ensemble, paint: Palette): string[] {
  const { synthesis, pullRequest } = ensemble
  if (!synthesis && !pullRequest) return []
  const lines = section('Result', paint)
  if (synthesis) {
    const { check } = synthesis
    const verdict = check
      ? `, check ${check.exitCode === 0 ? paint.green('passed') : paint.red(`failed (${check.exitCode})`)}`
      : ''
    lines.push(
      `  ${safeLine(synthesis.strategy)} of ${synthesis.bcIds.length} → ${synthesis.commit.slice(0, 12)}${verdict}`,
    )
    if (check && check.exitCode !== 0 && check.outputTail !== '') {
      const tail = safeText(check.outputTail.trimEnd(), { colors: false }).split('\n').slice(-8)
      lines.push(...tail.map((line) => paint.dim(`    ${line}`)))
    }
  }
  if (pullRequest) {
    lines.push(`  pull request #${pullRequest.number}: ${safeLine(pullRequest.title || ensemble.title)}`)
    lines.push(`  branch ${safeLine(pullRequest.branch)}  ${paint.underline(safeLine(pullRequest.url))}`)
  } else if (synthesis && synthesis.branch !== '')
    lines.push(`  branch ${safeLine(synthesis.branch)}, no pull request`)
  return lines
}

function conflictLines(ensemble: Ensemble, paint: Palette): string[] {
  const lines: string[] = []
  const { conflicts = [], equalGroups = [], failures = [], leftOut = [] } = ensemble.report ?? {}
  if (conflicts.length > 0) {
    lines.push(...section('Conflicts (the base was kept there)', paint))
    for (const { path, line, versions } of conflicts.slice(0, 20)) {
      lines.push(`  ${safeLine(path)}${line > 0 ? `:${line}` : ''}  ${versions.length} versions`)
    }
    if (conflicts.length > 20) lines.push(`  … and ${conflicts.length - 20} more`)
  }
  if (equalGroups.length > 0) {
    lines.push(...section('Equal', paint))
    for (const { bcIds } of equalGroups) lines.push(`  ${bcIds.map(safeLine).join(' = ')}`)
  }
  const told = new Set(failures.map(({ bcId }) => bcId))
  const others = leftOut.filter(({ bcId }) => !told.has(bcId))
  if (told.size + others.length > 0) {
    lines.push(...section('Not taken', paint))
    for (const { bcId, reason, message } of failures) {
      lines.push(`  ${safeLine(bcId)}  ${safeLine(reason)}  ${truncate(lastLine(message), 80)}`)
    }
    for (const { bcId, why } of others) lines.push(`  ${safeLine(bcId)}  ${truncate(safeLine(why), 100)}`)
  }
  return lines
}
