import type { InteractionEvent, RunEvent } from './run-event.ts'

/** What an agent adapter may say while it works: interaction updates (seed 004's deltas) and questions. */
export type TaskEvent = InteractionEvent | Extract<RunEvent, { type: 'agent_question' }>
