import { RecoverAgentResponseSchema, type RecoverAgentResponse } from '@tutti/proto'
import { messageJson } from '../output/message-json.ts'
import { isTextOutput, type Output } from '../output/output.ts'
import { leftOutText } from '../output/left-out-text.ts'
import { shownPath } from '../output/shown-path.ts'
import { safeLine } from '../output/terminal-text.ts'
import { cannotHave } from './cannot-have.ts'

/** What a new sandbox has, and how long each step took. */
export function printRecovery(output: Output, answer: RecoverAgentResponse): void {
  if (!isTextOutput(output)) return output.json(messageJson(RecoverAgentResponseSchema, answer))
  for (const line of lines(answer)) output.line(line)
}

function* lines(answer: RecoverAgentResponse): Generator<string> {
  const { incarnation, commit, replayed, manifestDigest, proven, index } = answer
  yield `sandbox ${incarnation} is ready: checkpoint ${safeLine(commit)} and ${replayed} changes after it`
  for (const lost of answer.passedOver) yield `passed over: checkpoint ${safeLine(lost)} is lost or damaged`
  yield `digest ${safeLine(manifestDigest)}, ${proven ? 'as recorded' : 'none was recorded'}; index ${safeLine(index)}`
  for (const { name, ms } of answer.steps) yield `${safeLine(name)}: ${ms} ms`
  for (const { path, reason } of answer.missing) yield leftOutText(shownPath(path), safeLine(reason))
  if (answer.moreMissing > 0) yield `not there: ${answer.moreMissing} more`
  // As a sync tells it.
  for (const { path, code, detail } of answer.unplaced)
    yield `! ${shownPath(path)}: ${safeLine(cannotHave(code, detail))}`
  if (answer.moreUnplaced > 0) yield `! ${answer.moreUnplaced} more of your changes`
}
