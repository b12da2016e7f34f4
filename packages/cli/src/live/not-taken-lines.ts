import type { AttemptFailure, Ensemble } from '@tutti/proto'
import { outputTail } from '../output/output-tail.ts'
import { safeLine } from '../output/terminal-text.ts'
import { wrap } from '../output/wrap.ts'
import { byWhom } from './by-whom.ts'
import type { SummaryOptions } from './summary-options.ts'

/**
 * Why each attempt that is not in the result is not: the end of the output that explains a failure, and the command that shows
 * more. What several agents failed with alike is shown once.
 */
export function notTakenLines(
  { report }: Ensemble,
  { paint, width, command, stoppedHere = false }: SummaryOptions,
): string[] {
  const failures = report?.failures ?? []
  const alike = Map.groupBy(failures, ({ reason, message }: AttemptFailure) => `${reason} ${message}`)
  const told = new Set(failures.map(({ bcId }) => bcId))
  const others = Map.groupBy(report?.leftOut.filter(({ bcId }) => !told.has(bcId)) ?? [], ({ why }) => why)
  return [
    ...[...alike.values()].flatMap((group) => [
      ...group.map(
        ({ bcId, reason }) => `  ${safeLine(bcId)}  ${paint.red(safeLine(reason.replaceAll('_', ' ')))}`,
      ),
      ...outputTail(byWhom(group[0]!.message, stoppedHere), { width, indent: '    ', keepFirst: true }),
      paint.dim(`    more: ${command(`agent events ${safeLine(group[0]!.bcId)}`)}`),
    ]),
    ...[...others].flatMap(([why, group]) => [
      ...group.map(({ bcId }) => `  ${safeLine(bcId)}`),
      ...wrap(safeLine(byWhom(why, stoppedHere)), width, '    '),
    ]),
  ]
}
