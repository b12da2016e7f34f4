import { TuttiError } from '@tutti/core'
import type { ModelMessage } from 'ai'
import { modelMessageSchema } from 'ai'
import { z } from 'zod'
import type { Todo } from './tools/tool.ts'

/** What a session remembers. Messages grow at their end only. */
export interface SessionState {
  messages: ModelMessage[]
  todos: readonly Todo[]
  /** The turn whose prompt is in `messages` already, so that it is never put in twice. */
  turnId: string
}

const stateSchema = z.object({
  version: z.literal(1),
  messages: z.array(modelMessageSchema),
  todos: z.array(z.object({ text: z.string(), status: z.enum(['pending', 'in_progress', 'completed']) })),
  turnId: z.string(),
})

export function encodeSession(state: SessionState): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ version: 1, ...state }))
}

/** @throws TuttiError `data_loss` when the bytes are damaged or of a version that this program does not know. */
export function decodeSession(bytes: Uint8Array | undefined): SessionState {
  if (bytes === undefined || bytes.length === 0) return { messages: [], todos: [], turnId: '' }
  try {
    const { messages, todos, turnId } = stateSchema.parse(JSON.parse(new TextDecoder().decode(bytes)))
    return { messages, todos, turnId }
  } catch (error) {
    throw new TuttiError(
      'data_loss',
      'The stored session of the embedded agent cannot be read by this version. Start a new agent from its last commit.',
      { reason: 'data_loss' },
      error,
    )
  }
}
