import { errorCodes, reasons, type ErrorCode, type Reason, type TuttiError } from '@tutti/core'
import { flagOfField } from './flag-of-field.ts'
import type { Palette } from './output/output.ts'
import { quoteWord } from './output/quote-word.ts'
import { safeLine, safeText } from './output/terminal-text.ts'

/** What to run next, per code; what threw the error may know better and says so as its detail `next`. */
const nextCommand: Record<ErrorCode, (command: string, tutti: string) => string> = {
  invalid_argument: (command, tutti) => `${tutti} ${command} --help`,
  unauthenticated: () => 'set TUTTI_API_KEY to a key of that server',
  permission_denied: (_command, tutti) => `${tutti} doctor`,
  not_found: listOf,
  already_exists: listOf,
  failed_precondition: (command, tutti) => `${tutti} ${isOfAgent(command) ? 'agent get' : 'doctor'}`,
  aborted: () => 'the same command again',
  out_of_range: (command, tutti) => `${tutti} ${command} without --from`,
  resource_exhausted: (_command, tutti) => `${tutti} agent list`,
  deadline_exceeded: () => 'the same command again',
  cancelled: (command, tutti) => `${tutti} ${command} --help`,
  unavailable: () => 'the same command again',
  data_loss: (command, tutti) =>
    command === 'agent recover'
      ? 'put back what is lost, then the same command again'
      : `${tutti} ${isOfAgent(command) ? 'agent recover' : 'doctor'}`,
  internal: (_command, tutti) => `${tutti} doctor`,
}

const isOfAgent = (command: string) => /^(agent .*|sync)$/.test(command)

function listOf(command: string, tutti: string): string {
  const noun = command.split(' ')[0] ?? ''
  return ['agent', 'ensemble', 'pr', 'repo'].includes(noun) ? `${tutti} ${noun} list` : `${tutti} repo list`
}

/**
 * An error as a person reads it: `error[code]: message`, then what to run next. `command` is the command's path without the
 * program's name, `tutti` that name.
 */
export function describeError(error: TuttiError, command: string, tutti: string, paint: Palette): string {
  const field = typeof error.detail['field'] === 'string' ? error.detail['field'] : ''
  const flag = flagOfField(field) ?? field
  // Where the server names its field, the person should read what they wrote.
  const message = safeText(replaceName(error.message, field, flag), { colors: false })
  const where = flag !== '' && !message.includes(flag) ? ` (${safeText(flag, { colors: false })})` : ''
  const { next: own, server } = error.detail
  const usual = server === 'unreachable' ? `${tutti} dev` : nextCommand[error.code](command, tutti)
  const next = typeof own === 'string' ? safeLine(own) : usual.replace('  ', ' ')
  return `${paint.red(`error[${error.code}]:`)} ${message}${where}\n${paint.dim('next:')} ${next}${dataDirOf(error)}`
}

/** A plain word is the field's name only where the message begins with it; within a sentence it is a word. */
function replaceName(message: string, name: string, by: string): string {
  if (name === '') return message
  if (message.startsWith(`${name}:`) || message.startsWith(`${name} `)) return by + message.slice(name.length)
  return /[.[_]/.test(name) ? message.replaceAll(name, () => by) : message
}

/** A server is started where it was looked for. */
function dataDirOf({ code, detail }: TuttiError): string {
  const folder = detail['data_dir']
  return code === 'unavailable' && typeof folder === 'string' ? ` --data-dir ${quoteWord(folder)}` : ''
}

/** The exit code of the reason that stands beside the error, else of its code. */
export function exitCodeOf({ code, detail }: TuttiError): number {
  const { reason } = detail
  if (typeof reason === 'string' && Object.hasOwn(reasons, reason)) return reasons[reason as Reason].exit
  return errorCodes[code].exit
}
