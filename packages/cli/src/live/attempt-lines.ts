import type { Attempt, Ensemble } from '@tutti/proto'
import stringWidth from 'fast-string-width'
import { outputTail } from '../output/output-tail.ts'
import { padEnd, table } from '../output/table.ts'
import { lastLine, safeLine } from '../output/terminal-text.ts'
import { wrap } from '../output/wrap.ts'
import { checkVerdict, stateOf } from './child-words.ts'
import { countFiles } from './plain-lines.ts'
import type { SummaryOptions } from './summary-options.ts'

/** Of so many checks that failed the output is shown; the others' is in their run logs. */
const shownTails = 5

/**
 * One block per agent: a row, its last words, and what its check said if it failed. The ids have lines of their own where the
 * rows do not fit.
 */
export function attemptLines(ensemble: Ensemble, options: SummaryOptions): string[] {
  const { width } = options
  const rows = ensemble.attempts.map((attempt) => cellsOf(attempt, ensemble, options))
  const whole = table(rows)
  const fits = whole.every((row) => numberWidth + stringWidth(row) <= width)
  const narrow = table(rows.map(([, ...cells]) => cells))
  const failed = ensemble.attempts.filter(({ check }) => check && check.exitCode !== 0)
  const told = new Map(ensemble.report?.failures.map(({ bcId, message }) => [bcId, lastLine(message)]))
  return ensemble.attempts.flatMap((attempt, index) => {
    const number = padEnd(`  ${index + 1}`, numberWidth)
    const words = lastLine(attempt.summary)
    return [
      ...(fits
        ? [`${number}${whole[index]}`]
        : [`${number}${rows[index]![0]}`, ...wrap(narrow[index]!, width, indent)]),
      ...(words === '' || words === told.get(attempt.bcId) ? [] : wrap(words, width, indent)),
      ...(failed.includes(attempt)
        ? checkLines(attempt, failed.indexOf(attempt) < shownTails, told.has(attempt.bcId), options)
        : []),
    ]
  })
}

const numberWidth = 5
const indent = ' '.repeat(numberWidth)

function cellsOf(attempt: Attempt, { synthesis }: Ensemble, { paint }: SummaryOptions): string[] {
  const { check, bcId, reason } = attempt
  const color = check?.exitCode === 0 ? paint.green : paint.red
  const unused = synthesis ? paint.dim('left out') : ''
  return [
    safeLine(bcId),
    safeLine(reason === '' ? stateOf(attempt).word : reason.replaceAll('_', ' ')),
    countFiles(attempt.filesChanged),
    check ? color(`check ${checkVerdict(check)}`) : '',
    synthesis?.bcIds.includes(bcId) === true ? paint.green('in the result') : unused,
  ]
}

function checkLines(
  { bcId, check }: Attempt,
  withOutput: boolean,
  isTold: boolean,
  { paint, width, command }: SummaryOptions,
): string[] {
  const tail = withOutput && check ? check.outputTail : ''
  return [
    ...(tail === '' ? [] : outputTail(tail, { width, indent: `${indent}  ` })),
    ...(isTold ? [] : [`${indent}more: ${command(`agent events ${safeLine(bcId)}`)}`]),
  ].map(paint.dim)
}
