import type { Reason } from '@tutti/core'
import { TodoStatus, ToolCallOutcome, type CloudAgentState } from '@tutti/proto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { encodeOffset } from '../offset.ts'
import type { RunEvent } from '../run-event.ts'
import { blobIdToBytes } from './blob-bytes.ts'
import {
  blobsOfState,
  decodeCloudAgentState,
  encodeCloudAgentState,
  foldCloudAgentState,
  initialCloudAgentState,
} from './cloud-agent-state.ts'

const bcId = 'bc-01890a5d-ac96-774b-bcce-b302099a8057' as const
const known = { title: 'Fix it', createdAt: 1_764_000_000_000 }
const blobId = `sha256_${'0f'.repeat(32)}` as const

function fold(
  events: readonly RunEvent[],
  from = initialCloudAgentState(known),
  before = 0,
): CloudAgentState {
  return events.reduce(
    (state, event, index) => foldCloudAgentState(state, event, encodeOffset(bcId, before + index + 1)),
    from,
  )
}

/** Few names, so that events meet; any text, also one that UTF-8 cannot write. */
const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constant('\ud800'), fc.constant('\udc00x'))
const turnId = fc.constantFrom('tn-1', 'tn-2', 'tn-3')
const callId = fc.constantFrom('c1', 'c2')
const event: fc.Arbitrary<RunEvent> = fc.oneof(
  fc.record({
    type: fc.constant('user_message' as const),
    turnId,
    text,
    source: fc.constantFrom('API', 'CLI'),
  }),
  fc.record({
    type: fc.constant('turn_started' as const),
    turnId,
    turn: fc.nat(9),
    incarnation: fc.nat(9),
    agent: fc.constant('embedded'),
  }),
  fc.record({
    type: fc.constant('turn_ended' as const),
    turnId,
    reason: fc.constantFrom<Reason>('completed', 'paused', 'agent_error'),
    detail: text,
  }),
  fc.record({ type: fc.constant('text_delta' as const), text }),
  fc.record({
    type: fc.constant('tool_call_started' as const),
    callId,
    toolName: text,
    args: fc.json().map((text) => JSON.parse(text) as unknown),
  }),
  fc.record({
    type: fc.constant('tool_call_completed' as const),
    callId,
    toolName: text,
    outcome: fc.constantFrom('ok' as const, 'interrupted' as const),
    result: fc.oneof(
      fc.json().map((text) => JSON.parse(text) as unknown),
      fc.constant({ truncated: true, bytes: 40_000, blobId }),
    ),
  }),
  fc.record({ type: fc.constant('summary' as const), summary: text }),
  fc.record({ type: fc.constant('git_commit' as const), sha: text, message: text }),
  fc.record({
    type: fc.constant('agent_question' as const),
    questionId: text,
    text,
    options: fc.array(text),
  }),
  fc.constantFrom<RunEvent>(
    { type: 'session_start', repository: 'demo', ref: 'main', agent: 'embedded' },
    { type: 'sandbox', incarnation: 1, state: 'waiting', position: 2 },
    { type: 'sandbox', incarnation: 1, state: 'ready', commit: 'aaa' },
    { type: 'status', status: 'ERROR', paused: false, reason: 'agent_error', queued: 2, hadSandbox: true },
    { type: 'status', status: 'RUNNING', paused: false, queued: 0, hadSandbox: true },
    { type: 'answer', commandId: 'c', questionId: 'q', text: 'yes' },
    {
      type: 'tool_call_started',
      callId: 'c1',
      toolName: 'todo',
      args: { todos: [{ text: 'a', status: 'pending' }] },
    },
    { type: 'delivery', requestId: 'r', outcome: 'failed', failure: 'moved', detail: 'x' },
  ),
)

describe('CloudAgentState', () => {
  it('is the same from a stored state and the events after it as from all events', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), fc.nat(60), (events, cut) => {
        const at = Math.min(cut, events.length)
        const whole = fold(events)
        const half = fold(events.slice(0, at))
        const stored = decodeCloudAgentState(encodeCloudAgentState(half))
        expect(stored).toEqual(half)
        const resumed = fold(events.slice(at), stored, at)
        expect(resumed).toEqual(whole)
        expect(encodeCloudAgentState(resumed)).toEqual(encodeCloudAgentState(whole))
        // What it has already changes nothing.
        expect(fold(events, whole)).toBe(whole)
      }),
      { numRuns: 300 },
    )
  })

  it('tells what the log knows', () => {
    const state = fold([
      { type: 'session_start', repository: 'demo', ref: 'main', agent: 'embedded:scripted' },
      { type: 'user_message', turnId: 'tn-1', text: 'Fix it', source: 'CLI' },
      { type: 'status', status: 'RUNNING', paused: false, queued: 0, hadSandbox: false },
      { type: 'sandbox', incarnation: 1, state: 'ready', commit: 'base' },
      { type: 'turn_started', turnId: 'tn-1', turn: 1, incarnation: 1, agent: 'embedded:scripted' },
      { type: 'user_message', turnId: 'tn-2', text: 'And that', source: 'API' },
      { type: 'user_message', turnId: 'tn-3', text: 'This first', source: 'API' },
      { type: 'text_delta', text: 'On ' },
      {
        type: 'tool_call_started',
        callId: 'c1',
        toolName: 'todo',
        args: { todos: [{ text: 'look', status: 'in_progress' }] },
      },
      { type: 'tool_call_completed', callId: 'c1', toolName: 'todo', outcome: 'ok', result: { open: 1 } },
      { type: 'tool_call_started', callId: 'c2', toolName: 'shell', args: { command: 'make' } },
      {
        type: 'tool_call_completed',
        callId: 'c2',
        toolName: 'shell',
        outcome: 'error',
        result: { truncated: true, bytes: 40_000, blobId },
      },
      { type: 'text_delta', text: 'it.' },
      {
        type: 'checkpoint',
        incarnation: 1,
        turnId: 'tn-1',
        commit: 'c1',
        tree: 't',
        filesChanged: 1,
        manifestDigest: '',
      },
      { type: 'turn_ended', turnId: 'tn-1', reason: 'interrupted' },
      { type: 'turn_started', turnId: 'tn-3', turn: 2, incarnation: 1, agent: 'embedded:scripted' },
      { type: 'text_delta', text: 'Now this.' },
      { type: 'turn_ended', turnId: 'tn-3', reason: 'agent_error', detail: 'no luck' },
      { type: 'status', status: 'ERROR', paused: false, reason: 'agent_error', queued: 1, hadSandbox: true },
      {
        type: 'delivery',
        requestId: 'r',
        outcome: 'delivered',
        branch: 'tutti/x',
        commit: 'c1',
        pullRequest: { url: 'http://pr/1', number: 1 },
      },
    ])
    const turn = { reason: '', text: '', toolCalls: [] }
    expect(state).toMatchObject({
      conversationState: {
        turns: [
          {
            turnId: 'tn-1',
            userMessage: { text: 'Fix it', messageId: 'tn-1' },
            text: 'On it.',
            reason: 'interrupted',
            toolCalls: [
              {
                callId: 'c1',
                name: 'todo',
                result: { outcome: ToolCallOutcome.SUCCEEDED, text: '{"open":1}' },
              },
              {
                callId: 'c2',
                name: 'shell',
                argsJson: '{"command":"make"}',
                result: { outcome: ToolCallOutcome.FAILED, text: '', blobId: blobIdToBytes(blobId) },
              },
            ],
          },
          { ...turn, turnId: 'tn-3', text: 'Now this.', reason: 'agent_error' },
          { ...turn, turnId: 'tn-2', userMessage: { text: 'And that' } },
        ],
        todos: [{ id: '1', content: 'look', status: TodoStatus.IN_PROGRESS }],
      },
      numPriorInteractionUpdates: 12,
      numCompletedTurns: 2,
      lastInteractionUpdateOffsetKey: encodeOffset(bcId, 20),
      startingCommit: 'base',
      baseBranch: 'main',
      lastUserTurnCommit: 'c1',
      turnStartTodoIds: ['1'],
      kickoffMessageId: 'tn-1',
      originalRequestStartUnixMs: BigInt(known.createdAt),
      userFacingErrorDetails: { details: { detail: 'no luck', additionalInfo: { reason: 'agent_error' } } },
      tutti: { reason: 'agent_error', queuedTurns: 1, incarnation: 1, commit: 'c1' },
    })
    const texts = [state.agentName, state.branchName, state.prUrl].map((text) =>
      new TextDecoder().decode(text),
    )
    expect(texts).toEqual(['Fix it', 'tutti/x', 'http://pr/1'])
    expect(blobsOfState(state)).toEqual([blobId])
  })

  it('stays under 1 MiB however long the log is, and keeps the newest turn', () => {
    const wide = '\u6f22'.repeat(33_000)
    let state = initialCloudAgentState(known)
    let sequence = 0
    let largest = 0
    const add = (next: RunEvent) => {
      state = foldCloudAgentState(state, next, encodeOffset(bcId, (sequence += 1)))
    }
    for (let turn = 1; turn <= 8; turn += 1) {
      add({ type: 'user_message', turnId: `tn-${turn}`, text: wide, source: 'API' })
      // Twenty more messages wait behind the first turn.
      if (turn === 1) {
        for (let late = 100; late < 120; late += 1)
          add({ type: 'user_message', turnId: `tn-${late}`, text: wide, source: 'API' })
      }
      add({ type: 'turn_started', turnId: `tn-${turn}`, turn, incarnation: 1, agent: 'x' })
      for (let call = 0; call < 60; call += 1) {
        add({ type: 'text_delta', text: wide.slice(0, 5000) })
        add({ type: 'tool_call_started', callId: `c${call}`, toolName: wide, args: wide })
        add({ type: 'tool_call_completed', callId: `c${call}`, toolName: wide, outcome: 'ok', result: wide })
      }
      add({ type: 'summary', summary: wide })
      add({
        type: 'tool_call_started',
        callId: 'todo',
        toolName: 'todo',
        args: { todos: Array.from({ length: 200 }, () => ({ text: wide, id: wide })) },
      })
      largest = Math.max(largest, encodeCloudAgentState(state).byteLength)
      add({ type: 'turn_ended', turnId: `tn-${turn}`, reason: 'completed' })
    }
    expect(largest).toBeLessThan(1 << 20)
    expect(largest).toBeGreaterThan(512 << 10)
    const { turns } = state.conversationState!
    expect(turns.find(({ turnId }) => turnId === 'tn-8')).toMatchObject({ toolCalls: { length: 48 } })
    expect(turns.map(({ turnId }) => turnId)).toContain('tn-119')
    expect(state.numCompletedTurns).toBe(8)
  })
})
