import { WorkflowUpdateFailedError } from '@temporalio/client'
import { ApplicationFailure } from '@temporalio/common'
import type { TurnResult } from '@tutti/activities'
import type { AgentState } from '@tutti/core'
import { agentStateQuery } from '@tutti/workflows'
import { expect, vi } from 'vitest'
import type { StubActivities } from './stub-activities.ts'
import type { Agent } from './world.ts'

/** Types of an agent's events, a turn's id or a status behind them, in log order. */
export function story(stubs: StubActivities, bcId: string): string[] {
  return stubs.events(bcId).map((event) => {
    if (event.type === 'user_message') return `message ${event.turn.turnId}`
    if (event.type === 'turn_ended') return `ended ${event.turnId} ${event.reason}`
    if (event.type === 'turn_interrupted') return `interrupted ${event.turnId} ${event.restart}`
    if (event.type === 'status') return `${event.status}${event.paused ? '+paused' : ''} ${event.queued}`
    return event.type
  })
}

export const refused = (sent: Promise<unknown>) =>
  sent.then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure)
        return `${error.cause.type}: ${error.cause.message}`
      throw error
    },
  )

export const completed: TurnResult = { reason: 'completed', failed: false }
export const stopped: TurnResult = { reason: 'stopped_by_user', failed: false }

export const sandboxLost = (...details: string[]) =>
  ApplicationFailure.create({ type: 'sandbox_lost', message: 'gone', nonRetryable: true, details })

export async function stateOf(agent: Agent): Promise<AgentState> {
  const { state } = await agent.handle.query<{ state: AgentState }>(agentStateQuery)
  return state
}

export const untilStatus = (agent: Agent, status: string) =>
  vi.waitFor(async () => expect((await stateOf(agent)).status).toBe(status), { timeout: 10_000 })
