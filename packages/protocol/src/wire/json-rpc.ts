import { TuttiError } from '@tutti/core'

import type { RunEvent } from '../run-event.ts'

/** A JSON-RPC 2.0 notification (seed 003, "Event Format"). */
export interface JsonRpcNotification {
  readonly jsonrpc: '2.0'
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** Seed 003's method names; every other event is `_tutti/` and its type. */
const methods: Partial<Record<RunEvent['type'], string>> = {
  file_change: '_posthog/file_change',
  file_sync: '_posthog/file_sync',
  git_commit: '_posthog/git_commit',
  text_delta: 'agent_message_chunk',
  agent_question: '_posthog/agent_question',
  user_message: '_posthog/user_message',
  tool_call_started: 'tool_call',
  tool_call_completed: 'tool_result',
  session_start: '_posthog/session_start',
  session_close: '_posthog/session_close',
  cancel: '_posthog/cancel',
  ack: '_posthog/ack',
}
const types = new Map(Object.entries(methods).map(([type, method]) => [method, type]))
const ours = '_tutti/'

/** Lossless: {@link fromJsonRpc} gives the same event back. Parameters are the event's fields; a message's text is `content` there. */
export function toJsonRpc(event: RunEvent): JsonRpcNotification {
  const { type, ...fields } = event
  const method = methods[type] ?? ours + type
  if (type !== 'user_message') return { jsonrpc: '2.0', method, params: fields }
  const { text, ...rest } = fields as Omit<Extract<RunEvent, { type: 'user_message' }>, 'type'>
  return { jsonrpc: '2.0', method, params: text === undefined ? rest : { ...rest, content: text } }
}

/** @throws TuttiError `invalid_argument` for a method that is not one of an event. */
export function fromJsonRpc({ method, params }: JsonRpcNotification): RunEvent {
  const type = types.get(method) ?? (method.startsWith(ours) ? method.slice(ours.length) : undefined)
  if (type === undefined) {
    throw new TuttiError(
      'invalid_argument',
      `${JSON.stringify(method.slice(0, 80))} is not the method of an event.`,
      {
        field: 'method',
      },
    )
  }
  if (type !== 'user_message') return { type, ...params } as RunEvent
  const { content, ...rest } = params
  return { type, ...rest, ...(content === undefined ? {} : { text: content }) } as RunEvent
}
