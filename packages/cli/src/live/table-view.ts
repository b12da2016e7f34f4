import type { ParallelAgentWorkflowChild, ParallelAgentWorkflowStatusUpdate } from '@tutti/proto'
import { phaseFromWire } from '@tutti/protocol/wire'
import type { Palette } from '../output/output.ts'
import { padEnd, truncate } from '../output/table.ts'
import { lastLine, safeLine } from '../output/terminal-text.ts'
import { formatDuration } from '../values/duration.ts'
import { checkWord, stateOf, type StateWord } from './child-words.ts'
import { answerCommand, questionText } from '../output/question-words.ts'

export interface TableFrame {
  readonly now: number
  readonly columns: number
  /** Lines that there is room for. */
  readonly rows: number
  readonly paint: Palette
  /** What a child at work does now; undefined: what the update says. */
  readonly headline?: (bcId: string) => string | undefined
}

const spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const marks: Record<StateWord['tone'], string> = { wait: '·', work: '', good: '✔', bad: '✖', calm: '–' }
const shownQuestions = 3
const fixed = { number: 3, state: 17, elapsed: 8, files: 5, check: 12 }

/**
 * One picture of an ensemble for a terminal: a header with the phase, one row per child. Never wider or higher than the
 * terminal: on a narrow one columns go, on a low one the children that have ended and then the last ones.
 */
export function renderTable(update: ParallelAgentWorkflowStatusUpdate, frame: TableFrame): string[] {
  const { paint, columns } = frame
  const wide = columns >= 72
  const used = fixed.number + fixed.state + fixed.elapsed + (wide ? fixed.files + fixed.check : 0) + 2
  const headlineWidth = Math.max(8, columns - used - 2)
  const head =
    padEnd('  #', fixed.number + 2) +
    padEnd('state', fixed.state) +
    padEnd('time', fixed.elapsed) +
    (wide ? padEnd('files', fixed.files + 1) + padEnd('check', fixed.check) : '') +
    'now'
  const questions = questionLines(update.children, frame)
  const room = Math.max(1, frame.rows - 4 - questions.length)
  const shown = chooseRows(update.children, room)
  const rows = shown.map(({ child, index }) => renderRow(child, index, frame, wide, headlineWidth))
  const hidden = update.children.length - shown.length
  return [
    header(update, frame),
    paint.dim(truncate(head, columns - 1)),
    ...rows,
    ...(hidden > 0 ? [paint.dim(`  … and ${hidden} more`)] : []),
    ...questions,
  ]
}

/** Two lines for each of the first agents that wait for an answer: what is asked, and how to answer it. */
function questionLines(
  children: readonly ParallelAgentWorkflowChild[],
  { columns, paint }: TableFrame,
): string[] {
  return children
    .flatMap(({ bcId, question }, index) => (question ? [{ bcId, question, number: index + 1 }] : []))
    .slice(0, shownQuestions)
    .flatMap(({ bcId, question, number }) => [
      paint.yellow(truncate(`${number} ${questionText(question)}`, columns - 1)),
      truncate(`  ${answerCommand(bcId)}`, columns - 1),
    ])
}

function header(update: ParallelAgentWorkflowStatusUpdate, { now, columns, paint }: TableFrame): string {
  const phase = phaseFromWire(update.phase)
  const name = phase === 'UNSPECIFIED' ? 'starting' : phase
  const startedAt = update.phases[0]?.startedAtMs
  const elapsed = startedAt === undefined ? '' : `  ${formatDuration(now - Number(startedAt))}`
  const ended = update.children.filter((child) =>
    ['good', 'bad', 'calm'].includes(stateOf(child).tone),
  ).length
  const color = phase === 'COMPLETED' ? paint.green : phase === 'ERROR' ? paint.red : paint.cyan
  const tail = `  ${ended}/${update.children.length} ended${elapsed}${reasonWords(update.reason)}`
  return `${color(paint.bold(name))}${truncate(tail, columns - name.length - 1)}`
}

/** `completed` says no more than the phase does. */
const reasonWords = (reason: string): string =>
  reason === '' || reason === 'completed' ? '' : `  ${safeLine(reason.replaceAll('_', ' '))}`

function renderRow(
  child: ParallelAgentWorkflowChild,
  index: number,
  frame: TableFrame,
  wide: boolean,
  headlineWidth: number,
): string {
  const { now, paint } = frame
  const state = stateOf(child)
  const mark = state.tone === 'work' ? spinner[Math.floor(now / 100) % spinner.length]! : marks[state.tone]
  const color = { wait: paint.dim, work: paint.cyan, good: paint.green, bad: paint.red, calm: paint.yellow }[
    state.tone
  ]
  const end = child.endedAtMs > 0n ? Number(child.endedAtMs) : now
  const elapsed = child.startedAtMs > 0n ? formatDuration(end - Number(child.startedAtMs)) : ''
  const check = checkWord(child)
  const checkColor = check === 'passed' ? paint.green : paint.red
  const live = ['work', 'wait'].includes(state.tone) ? frame.headline?.(child.bcId) : undefined
  const known = live ?? (child.headline || (state.tone === 'work' ? child.agent : state.word))
  const headline = truncate(lastLine(known), headlineWidth)
  return (
    `${color(mark)} ` +
    padEnd(String(index + 1), fixed.number) +
    color(padEnd(truncate(state.word, fixed.state - 1), fixed.state)) +
    padEnd(elapsed, fixed.elapsed) +
    (wide
      ? padEnd(child.filesChanged > 0 ? String(child.filesChanged) : '', fixed.files + 1) +
        checkColor(padEnd(check, fixed.check))
      : '') +
    headline
  )
}

/** Those at work first, when not all fit; in their order. */
function chooseRows(
  children: readonly ParallelAgentWorkflowChild[],
  room: number,
): { child: ParallelAgentWorkflowChild; index: number }[] {
  const all = children.map((child, index) => ({ child, index }))
  if (all.length <= room) return all
  const rank = ({ child }: { child: ParallelAgentWorkflowChild }) =>
    ['work', 'wait', 'bad', 'good', 'calm'].indexOf(stateOf(child).tone)
  return all
    .toSorted((left, right) => rank(left) - rank(right) || left.index - right.index)
    .slice(0, room - 1)
    .toSorted((left, right) => left.index - right.index)
}
