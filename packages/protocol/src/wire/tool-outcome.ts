import { ToolCallOutcome } from '@tutti/proto'

import type { RunEvent } from '../run-event.ts'

export type ToolOutcome = Extract<RunEvent, { type: 'tool_call_completed' }>['outcome']

const outcomes: Record<ToolOutcome, ToolCallOutcome> = {
  ok: ToolCallOutcome.SUCCEEDED,
  error: ToolCallOutcome.FAILED,
  cancelled: ToolCallOutcome.CANCELLED,
  interrupted: ToolCallOutcome.INTERRUPTED,
}

export const toolOutcomeToWire = (outcome: ToolOutcome): ToolCallOutcome => outcomes[outcome]

/** A value that this version does not know is an error: the call is over and was not said to have worked. */
export const toolOutcomeFromWire = (wire: ToolCallOutcome | undefined): ToolOutcome =>
  (Object.keys(outcomes) as ToolOutcome[]).find((name) => outcomes[name] === wire) ?? 'error'
