import { passedCheck, promptTitle, reasons, type Attempt, type CheckResult, visibleText } from '@tutti/core'
import type { ConflictReport, MergeReport } from '@tutti/protocol'
import { maxBodyLength } from './limits.ts'
import { codeBlock, codeSpan } from './safe-markdown.ts'

export interface EnsembleDescription {
  readonly prompt: string
  readonly strategy: string
  readonly attempts: readonly Attempt[]
  /** What is in the pull request. */
  readonly included: readonly Attempt['bcId'][]
  readonly report: MergeReport
  /** The check on the combined tree, when there is one. */
  readonly check?: { readonly command: string; readonly result: CheckResult }
}

const maxShownConflicts = 20

/** Title and body of an ensemble's pull request: Markdown in which all that comes from outside is code. */
export function describeEnsemble(description: EnsembleDescription): {
  readonly title: string
  readonly body: string
} {
  const { prompt, report, check } = description
  const sections = [
    `## Task\n\n${codeBlock(prompt, 2000)}`,
    describeAttempts(description),
    ...(check ? [describeCheck(check.command, check.result)] : []),
    ...(report.conflicts.length > 0 ? [describeConflicts(report.conflicts)] : []),
    ...(report.failures.length > 0 ? [describeFailures(report)] : []),
  ]
  return { title: promptTitle(prompt), body: cutBody(`${sections.join('\n\n')}\n`) }
}

/** Forges refuse bodies above 65,536 characters: cut well before that, and say so. */
export function cutBody(body: string): string {
  if (body.length <= maxBodyLength) return body
  const notice = '\n\n(The description was cut here; the rest is in the ensemble’s report.)\n'
  const kept = body.slice(0, maxBodyLength - notice.length - fenceRoom)
  const whole = kept.slice(0, Math.max(kept.lastIndexOf('\n'), 0))
  const open = openFence(whole)
  return `${whole}${open === undefined ? '' : `\n${open}`}${notice}`
}

const fenceRoom = 100

/** The fence that a cut has left open. */
function openFence(text: string): string | undefined {
  let open: string | undefined
  for (const line of text.split('\n')) {
    const fence = /^(`{3,})(?:text)?$/.exec(line)?.[1]
    if (fence === undefined) continue
    if (open === undefined) open = fence
    else if (fence.length >= open.length && line === fence) open = undefined
  }
  return open
}

function describeAttempts({ attempts, included, report, strategy }: EnsembleDescription): string {
  const lines = attempts.map((attempt) => {
    const place = included.includes(attempt.bcId) ? 'in this change' : whyNot(attempt, report)
    const files = attempt.filesChanged === 1 ? '1 file' : `${attempt.filesChanged} files`
    const own = attempt.check ? `, own check ${passedCheck(attempt) ? 'passed' : 'failed'}` : ''
    const summary = attempt.summary.trim() === '' ? '' : `\n  ${codeSpan(attempt.summary)}`
    return `- ${codeSpan(attempt.bcId)}: ${place} (${files}${own})${summary}`
  })
  const equal = report.equal_groups.map(
    (group) =>
      `\n${group.length} attempts made the same change: ${group.map((id) => codeSpan(id)).join(', ')}.`,
  )
  return [`## Attempts\n\nCombined with the strategy ${codeSpan(strategy)}.\n`, ...lines, ...equal].join('\n')
}

function whyNot({ bcId }: Attempt, report: MergeReport): string {
  const entry = report.left_out.find(({ bc_id: id }) => id === bcId)
  return entry ? `left out. ${visibleText(entry.why)}` : 'the same as one in this change'
}

function describeCheck(command: string, { exitCode, tail }: CheckResult): string {
  if (exitCode === 0) return `## Check\n\n${codeSpan(command)} passed on the combined tree.`
  const how = exitCode === null ? 'was stopped before it ended' : `failed with exit code ${exitCode}`
  return `## Check\n\n${codeSpan(command)} ${how} on the combined tree.\n\n${codeBlock(tail, 2000)}`
}

function describeConflicts(conflicts: readonly ConflictReport[]): string {
  const shown = conflicts.slice(0, maxShownConflicts).map((conflict) => {
    const versions = conflict.versions.map(
      ({ bc_id: id, text }) => `${codeSpan(id)}:\n\n${codeBlock(text, 1000)}`,
    )
    const base = conflict.base === '' ? 'Base: nothing.' : `Base:\n\n${codeBlock(conflict.base, 1000)}`
    return [
      `### ${codeSpan(conflict.path)}, line ${conflict.line} (${conflict.kind.replaceAll('_', '/')})`,
      base,
      ...versions,
    ].join('\n\n')
  })
  const rest = conflicts.length - shown.length
  const intro =
    'Here the attempts disagree. The change keeps what the base has; for a file that several attempts added, the first version.'
  return [
    `## Conflicts\n\n${intro}`,
    ...shown,
    ...(rest > 0 ? [`… and ${rest} more in the report.`] : []),
  ].join('\n\n')
}

function describeFailures(report: MergeReport): string {
  const lines = report.failures.map(
    ({ bc_id: id, reason, message }) => `- ${codeSpan(id)}: ${reasons[reason].sentence} ${codeSpan(message)}`,
  )
  return ['## Failures\n', ...lines].join('\n')
}
