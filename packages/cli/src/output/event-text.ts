import type { CheckResult } from '@tutti/core'
import type { RecoveryEvent, RunEvent, ShellOutput } from '@tutti/protocol'
import { leftOutText } from './left-out-text.ts'
import { outputTail } from './output-tail.ts'
import { shownPath } from './shown-path.ts'
import { wayOn } from './way-on.ts'

/** An event in a person's words: what it is, and its text, which may have several lines. Untrusted, as the event is. */
export interface EventText {
  readonly label: string
  readonly text: string
}

/** Undefined for an event of a newer version. */
export function eventText(event: RunEvent): EventText | undefined {
  switch (event.type) {
    case 'session_start':
      return say('session', words('started', event.repository, event.ref, event.agent))
    case 'session_close':
      return say('session', `closed: ${event.reason}`)
    case 'status':
      return say('status', words(event.status, event.paused && 'paused', event.reason, waiting(event)))
    case 'sandbox':
      return say(
        'sandbox',
        words(event.state, event.position && `#${event.position}`, event.commit, event.reason, event.detail),
      )
    case 'state_saved':
    case 'session_saved':
      return say('saved', event.type === 'state_saved' ? 'state' : 'session')
    case 'workspace_captured':
      return say('saved', 'files')
    case 'git_state':
      return say('saved', words('repository', event.branch, event.head))
    case 'recovery':
      return say('recovery', recoveryText(event))
    case 'workspace_restored':
      return say('recovery', `files as at ${event.atOffset}`)
    case 'recovery_failed':
      return say('recovery', words(`failed: ${event.reason}`, event.detail))
    case 'user_message':
      return say('message', event.text ?? `(long; blob ${event.blobId})`)
    case 'turn_started':
      return say('turn', words(`${event.turn} started`, event.agent, event.brain))
    case 'turn_interrupted':
      return say('turn', words(`interrupted, restart ${event.restart}`, event.reason))
    case 'turn_ended':
      return say('turn', words(`ended: ${event.reason}`, event.detail))
    case 'agent_question':
      return say('asks', words(event.text, event.options && `[${event.options.join(' | ')}]`))
    case 'answer':
      return say('answer', event.text)
    case 'check':
      return say('check', checkText(event))
    case 'text_delta':
      return say('says', event.text)
    case 'thinking_delta':
      return say('thinks', event.text)
    case 'thinking_completed':
      return say('thinks', `done after ${event.durationMs} ms`)
    case 'tool_call_started':
      return say('tool', words(event.toolName, argumentText(event.args)))
    case 'partial_tool_call':
      return say('tool', words(event.toolName, event.argsTextDelta))
    case 'tool_call_delta':
      return say('tool', json(event.delta))
    case 'tool_call_completed':
      return say('tool', words(event.toolName, event.outcome))
    case 'shell_output_delta':
      return shellText(event.event)
    case 'token_delta':
      return say('tokens', String(event.tokens))
    case 'summary':
      return say('summary', event.summary)
    case 'summary_started':
    case 'summary_completed':
      return say('summary', event.type === 'summary_started' ? 'started' : 'completed')
    case 'step_started':
      return say('step', `${event.stepId} started`)
    case 'step_completed':
      return say('step', `${event.stepId} completed after ${event.durationMs} ms`)
    case 'file_change':
      return say('file', words(event.action, pathText(event) + (event.fileType === 'dir' ? '/' : '')))
    case 'file_sync':
      return say(
        'file',
        words(event.action, pathText(event) + (event.fileType === 'dir' ? '/' : ''), 'by the user'),
      )
    case 'file_sync_failed':
      return say('file', words('not in the sandbox', pathText(event), `(${event.code})`, event.detail))
    case 'file_skipped':
      return say('file', words('skipped', pathText(event), event.reason))
    case 'checkpoint':
      return say('checkpoint', words(event.commit, `files changed: ${event.filesChanged}`))
    case 'git_commit':
      return say('commit', words(event.sha, event.message))
    case 'cancel':
      return say('command', words('cancel', event.reason))
    case 'ack':
      return say('command', 'done')
    case 'phase':
      return say('phase', words(event.phase, event.reason, event.detail))
    case 'child':
      return say('child', words(event.child.bcId, event.child.status, event.child.reason))
    case 'combined':
      return say('combined', words(event.commit, `conflicts: ${event.conflicts}`))
    case 'verified':
      return say('verified', words(event.commit, verdict(event.result)))
    case 'delivery':
      return say('delivery', deliveryText(event))
    default:
      return undefined
  }
}

const say = (label: string, text: string): EventText => ({ label, text })
const words = (...parts: readonly (string | number | false | undefined)[]): string =>
  parts.filter((part) => part !== undefined && part !== false && part !== '').join('  ')
const pathText = ({ path, pathB64 }: { readonly path: string; readonly pathB64?: string }): string =>
  shownPath(pathB64 === undefined ? path : Buffer.from(pathB64, 'base64'))
const json = (value: unknown): string => JSON.stringify(value) ?? ''
const waiting = ({ status, paused, queued }: Extract<RunEvent, { type: 'status' }>) =>
  queued > 0 && `waiting turns: ${queued}${status === 'ERROR' ? `; ${wayOn(paused, 'ID')}` : ''}`

const verdict = ({ exitCode }: CheckResult): string => `exit code ${exitCode ?? 'none: it was killed'}`

function shellText(event: ShellOutput): EventText {
  switch (event.case) {
    case 'start':
      return say('shell', event.command)
    case 'stdout':
    case 'stderr':
      return say(event.case, event.data)
    case 'truncated':
      return say('shell', `${event.bytes} bytes of output left out here`)
    case 'exit':
      return say('shell', event.signal ? `ended by ${event.signal}` : `exit code ${event.code ?? 'unknown'}`)
  }
}

function deliveryText(event: Extract<RunEvent, { type: 'delivery' }>): string {
  if (event.outcome === 'delivered') return words(event.branch, event.commit, event.pullRequest?.url)
  return event.outcome === 'failed' ? words(event.failure, event.detail) : event.outcome
}

/** A tool's command or path says what it does; else all its arguments. */
function argumentText(args: unknown): string {
  if (typeof args !== 'object' || args === null) return json(args)
  for (const name of ['command', 'path']) {
    const value: unknown = Reflect.get(args, name)
    if (typeof value === 'string') return name === 'path' ? shownPath(value) : value
  }
  return json(args)
}

/** One that failed says what it printed last. */
function checkText({ command, result }: Extract<RunEvent, { type: 'check' }>): string {
  const tail = result.exitCode === 0 ? [] : outputTail(result.tail, { width: Infinity, indent: '' })
  return [`${command}  ${verdict(result)}`, ...tail].join('\n')
}

const occasions: Readonly<Record<RecoveryEvent['reason'], string>> = {
  lost: 'after one that was lost',
  released: 'after one that was released',
  requested: 'as was asked for',
  expires: 'before the end of the one before it',
}

function recoveryText(event: RecoveryEvent): string {
  const { incarnation, reason, commit, replayed, index, proven, missing, moreMissing } = event
  const { passedOver = [], steps = [] } = event
  const absent = missing.map((left) => leftOutText(pathText(left), left.reason))
  if (moreMissing) absent.push(`not there: ${moreMissing} more`)
  return [
    words(`sandbox ${incarnation} ${occasions[reason]}`, commit, `changes replayed: ${replayed}`),
    ...passedOver.map((lost) => `passed over: checkpoint ${lost} is lost or damaged`),
    `index ${index}, digest ${proven ? 'as recorded' : 'not recorded'}`,
    ...absent,
    ...(steps.length > 0 ? [steps.map(({ name, ms }) => `${name} ${ms} ms`).join(', ')] : []),
  ].join('\n')
}
