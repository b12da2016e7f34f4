import { isEnsembleEnd } from '@tutti/core'
import type { ParallelAgentWorkflowStatusUpdate } from '@tutti/proto'
import { phaseFromWire } from '@tutti/protocol/wire'
import { lastLine, safeLine } from '../output/terminal-text.ts'
import { formatDuration } from '../values/duration.ts'
import { byWhom } from './by-whom.ts'
import { checkWord, stateOf } from './child-words.ts'
import { answerCommand, questionText } from '../output/question-words.ts'

/**
 * The live view of a pipe: for each update the lines that say what changed since the one before; none when nothing did. The
 * time in front is from the start of the ensemble to the update's own event, so that a log that is read later says the same.
 *
 * @param now for a server that does not tell the time of an update
 * @param stoppedHere whether this client has stopped it
 */
export function createPlainLines(
  now: () => number,
  stoppedHere: () => boolean = () => false,
): (update: ParallelAgentWorkflowStatusUpdate) => string[] {
  const seen = new Map<string, string>()
  const isNew = (key: string, value: string): boolean => {
    if (value === '' || seen.get(key) === value) return false
    seen.set(key, value)
    return true
  }
  return (update) => {
    const lines: string[] = []
    const at = update.atMs > 0n ? Number(update.atMs) : now()
    // Before its first phase no time has passed for it.
    const elapsed = Math.max(0, at - Number(update.phases[0]?.startedAtMs ?? at))
    const time = formatDuration(elapsed).padStart(6)
    const say = (text: string) => lines.push(`${time}  ${text}`)

    const phase = phaseFromWire(update.phase)
    const sayPhase = () => {
      if (phase === 'UNSPECIFIED' || !isNew('phase', phase)) return
      // `completed` says no more than the phase does.
      const reason = update.reason === '' || update.reason === 'completed' ? '' : safeLine(update.reason)
      const message = safeLine(byWhom(update.message, stoppedHere()))
      say(`${phase}  ${[reason, message].filter(Boolean).join(': ')}`.trimEnd())
    }
    // What the children did last belongs before the end, what they do next behind the phase that it is in.
    if (!isEnsembleEnd(phase)) sayPhase()
    const total = update.children.length
    update.children.forEach((child, index) => {
      const name = `agent ${index + 1}/${total}`
      if (isNew(`id ${index}`, child.bcId)) {
        say(`${name}  ${safeLine(child.bcId)}  ${safeLine(child.agent)}`.trimEnd())
      }
      const { word } = stateOf(child)
      if (isNew(`state ${index}`, word)) {
        const files = child.filesChanged > 0 ? `, ${countFiles(child.filesChanged)} changed` : ''
        const headline = lastLine(child.headline)
        say(`${name}  ${word}${files}${headline === '' ? '' : `: ${headline}`}`)
      }
      if (child.question && isNew(`question ${index}`, child.question.questionId)) {
        const asks = `(${safeLine(child.bcId)}) ${questionText(child.question)}`
        say(`${name}  ${asks}; answer with: ${answerCommand(child.bcId)}`)
      }
      if (isNew(`check ${index}`, checkWord(child))) say(`${name}  check ${checkWord(child)}`)
    })
    sayPhase()
    return lines
  }
}

export const countFiles = (count: number): string => `${count} file${count === 1 ? '' : 's'}`
