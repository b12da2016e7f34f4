import { agentId } from '@tutti/core'
import type { AgentRow } from '@tutti/store'
import { expect, test } from 'vitest'

import { agentStreamHasEnded } from './agent-stream-end.ts'
import type { HandlerDeps } from './handler.ts'
import { createPendingTurns } from './pending-turns.ts'

const bcId = agentId(1, new Uint8Array(10))
const { signal } = new AbortController()

function depsAt(row: Partial<AgentRow>): Pick<HandlerDeps, 'catalog' | 'pendingTurns'> {
  const agents = { get: async () => row }
  const clock = { now: () => 0, monotonic: () => 0, sleep: async () => {} }
  return {
    catalog: { agents } as unknown as HandlerDeps['catalog'],
    pendingTurns: createPendingTurns({ clock }),
  }
}
const idle = { status: 'IDLE', paused: false, reason: 'completed', queue: [] } as const

test('a stream does not end while the catalog knows more of the log than the reader has seen', async () => {
  // The follow-up was accepted at 7 and is in the log and the catalog before the reader, who stands at 7, asks whether that was all.
  const deps = depsAt({ logSequence: 9, state: idle })
  deps.pendingTurns.add(bcId, 7)
  const at = { owner: 'local', bcId, status: 'IDLE' as const }
  expect(await agentStreamHasEnded(deps, { ...at, position: 7 }, signal)).toBe(false)
  expect(await agentStreamHasEnded(deps, { ...at, position: 9 }, signal)).toBe(true)
})

test('a stream that began behind the last status ends by what the catalog says', async () => {
  const at = { owner: 'local', bcId, status: undefined, position: 9 }
  expect(await agentStreamHasEnded(depsAt({ logSequence: 9, state: idle }), at, signal)).toBe(true)
  const running = { status: 'RUNNING', paused: false, queue: [] } as const
  expect(await agentStreamHasEnded(depsAt({ logSequence: 9, state: running }), at, signal)).toBe(false)
})
