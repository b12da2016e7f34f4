import { fromBinary, fromJsonString, toBinary, toJsonString } from '@bufbuild/protobuf'
import { InteractionUpdateSchema, ParallelAgentWorkflowStatusUpdate_Phase } from '@tutti/proto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import type { RunEvent } from '../run-event.ts'
import { blobIdFromBytes, blobIdToBytes } from './blob-bytes.ts'
import { foldEnsembleStatus, hasEnded, initialEnsembleStatus } from './ensemble-status.ts'
import { fromInteractionUpdate, toInteractionUpdate } from './interaction-update.ts'
import { encodeRunEvent } from '../run-event-body.ts'
import { fromJsonRpc, toJsonRpc } from './json-rpc.ts'
import { decodeSegment, encodeSegment } from './log-segment.ts'
import { composerStatusFromWire, sourceFromWire, sourceToWire } from './statuses.ts'

const bcId = 'bc-01890a5d-ac96-774b-bcce-b302099a8057' as const
const text = fc.string({ unit: 'binary' })
const name = fc.string({ minLength: 1 })
const count = fc.nat({ max: 2 ** 31 - 1 })

/** Events that the interaction view carries whole. */
const carried: fc.Arbitrary<RunEvent> = fc.oneof(
  fc.record({ type: fc.constant('text_delta' as const), text }),
  fc.record({ type: fc.constant('thinking_delta' as const), text }),
  fc.record({ type: fc.constant('thinking_completed' as const), durationMs: count }),
  fc.record({
    type: fc.constant('user_message' as const),
    turnId: name,
    text,
    source: fc.constant('UNSPECIFIED'),
  }),
  fc.record({
    type: fc.constant('turn_ended' as const),
    turnId: name,
    reason: fc.constantFrom('completed' as const, 'stalled' as const),
  }),
  fc.record({
    type: fc.constant('partial_tool_call' as const),
    callId: name,
    toolName: name,
    argsTextDelta: text,
  }),
  fc.record({
    type: fc.constant('tool_call_started' as const),
    callId: name,
    toolName: name,
    args: fc.json().map((text) => JSON.parse(text) as unknown),
    modelCallId: name,
  }),
  fc.record({ type: fc.constant('tool_call_delta' as const), callId: name, delta: text }),
  fc.record({
    type: fc.constant('tool_call_completed' as const),
    callId: name,
    toolName: name,
    outcome: fc.constantFrom('ok' as const, 'error' as const, 'cancelled' as const, 'interrupted' as const),
    result: name,
  }),
  fc.record({
    type: fc.constant('shell_output_delta' as const),
    callId: name,
    event: fc.oneof(
      fc.record({ case: fc.constant('start' as const), command: text }),
      fc.record({ case: fc.constantFrom('stdout' as const, 'stderr' as const), data: text }),
      fc.record({ case: fc.constant('exit' as const), code: fc.nat({ max: 255 }) }),
      fc.record({
        case: fc.constant('exit' as const),
        code: fc.constant(null),
        signal: fc.constant('SIGKILL'),
      }),
    ),
  }),
  fc.record({ type: fc.constant('token_delta' as const), tokens: count }),
  fc.record({ type: fc.constant('summary' as const), summary: text }),
  fc.constantFrom<RunEvent>({ type: 'summary_started' }, { type: 'summary_completed' }),
  fc.record({ type: fc.constant('step_started' as const), stepId: count }),
  fc.record({ type: fc.constant('step_completed' as const), stepId: count, durationMs: count }),
)

/** Events that only lossless views carry. */
const others: RunEvent[] = [
  { type: 'session_start', repository: 'demo', ref: 'main', agent: 'embedded:scripted' },
  { type: 'status', status: 'IDLE', paused: true, reason: 'paused', queued: 2, hadSandbox: true },
  { type: 'sandbox', incarnation: 2, state: 'waiting', position: 3 },
  { type: 'file_change', incarnation: 1, path: 'a', action: 'deleted' },
  { type: 'file_sync', commandId: 'c', path: 'a', action: 'deleted' },
  { type: 'git_commit', sha: 'abc', message: 'x' },
  { type: 'agent_question', questionId: 'q', text: 'why?', options: ['a', 'b'] },
  { type: 'cancel', commandId: 'c', turnId: 't', reason: 'interrupted' },
  { type: 'ack', commandId: 'c' },
  { type: 'shell_output_delta', callId: 'c', event: { case: 'truncated', bytes: 12 } },
  { type: 'phase', phase: 'GATHERING' },
  { type: 'delivery', requestId: 'r', outcome: 'nothing_to_deliver' },
  { type: 'workspace_restored', incarnation: 2, requestId: 'r', atOffset: 'o' },
  { type: 'file_sync_failed', incarnation: 1, commandId: 'c', path: 'a', code: 'ENOSPC', detail: 'x' },
  { type: 'recovery_failed', requestId: 'r', reason: 'data_loss', detail: 'x' },
]

describe('InteractionUpdate', () => {
  it('gives back every event that it carries, through binary and JSON', () => {
    fc.assert(
      fc.property(carried, (event) => {
        // Lone surrogates cannot be written as UTF-8; they are refused where text comes in.
        fc.pre(isWellFormed(event))
        const update = toInteractionUpdate(event)!
        const binary = fromBinary(InteractionUpdateSchema, toBinary(InteractionUpdateSchema, update))
        expect(fromInteractionUpdate(binary)).toEqual(event)
        const json = fromJsonString(InteractionUpdateSchema, toJsonString(InteractionUpdateSchema, update))
        expect(fromInteractionUpdate(json)).toEqual(event)
      }),
      { numRuns: 500 },
    )
  })

  it('leaves out what it cannot carry, and gives results that are not text as JSON', () => {
    expect(others.map((event) => toInteractionUpdate(event))).toEqual(others.map(() => undefined))
    const update = toInteractionUpdate({
      type: 'tool_call_completed',
      callId: 'c',
      toolName: 't',
      outcome: 'ok',
      result: { a: [1] },
    })
    expect(fromInteractionUpdate(update!)).toMatchObject({ result: '{"a":[1]}' })
  })
})

describe('segments of a log', () => {
  const head = { log: bcId, owner: 'ann', about: { kind: 'agent' } }
  const place = { at: 1, producer: 'sandbox', epoch: 2, producerSequence: 3 }

  it('give back every record to the byte, whatever is in it', () => {
    const bodies = fc.oneof(
      fc.oneof(carried, fc.constantFrom(...others)).map(encodeRunEvent),
      fc.record({ type: fc.constantFrom('of_a_newer_version', 'text_delta', 'status'), body: text }),
      fc.constant({ type: 'text_delta', body: '{"text":"in another order","type":"text_delta"}' }),
    )
    fc.assert(
      fc.property(fc.array(bodies), (events) => {
        const records = events.map((event, at) => ({ sequence: at + 1, ...place, ...event }))
        const sealed = encodeSegment(head, records)
        expect(decodeSegment(sealed)).toEqual({ ...head, records })
        for (const line of sealed.trimEnd().split('\n'))
          expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0', method: expect.any(String) as string })
      }),
    )
  })

  it('are refused when they are cut off, damaged or newer', () => {
    const whole = encodeSegment(head, [
      { sequence: 1, ...place, ...encodeRunEvent({ type: 'text_delta', text: 'a' }) },
    ])
    for (const text of [whole.slice(0, -1), whole.slice(20), '', '{}\n'])
      expect(() => decodeSegment(text), text).toThrow(/damaged/)
    expect(() => decodeSegment(whole.replace('"format":1', '"format":2'))).toThrow(/newer/)
  })
})

describe('JSON-RPC', () => {
  it('gives back every event', () => {
    fc.assert(
      fc.property(fc.oneof(carried, fc.constantFrom(...others)), (event) => {
        const line = JSON.stringify(toJsonRpc(event))
        expect(fromJsonRpc(JSON.parse(line))).toEqual(JSON.parse(JSON.stringify(event)))
      }),
    )
  })

  it('uses the method names of seed 003', () => {
    const methodOf = (event: RunEvent) => toJsonRpc(event).method
    expect(others.map(methodOf).slice(0, 9)).toEqual([
      '_posthog/session_start',
      '_tutti/status',
      '_tutti/sandbox',
      '_posthog/file_change',
      '_posthog/file_sync',
      '_posthog/git_commit',
      '_posthog/agent_question',
      '_posthog/cancel',
      '_posthog/ack',
    ])
    expect(toJsonRpc({ type: 'user_message', turnId: 't', text: 'Fix it', source: 'API' })).toEqual({
      jsonrpc: '2.0',
      method: '_posthog/user_message',
      params: { turnId: 't', content: 'Fix it', source: 'API' },
    })
  })

  it('refuses a method that is no event', () => {
    expect(() => fromJsonRpc({ jsonrpc: '2.0', method: 'initialize', params: {} })).toThrow(
      /not the method of an event/,
    )
  })
})

describe('ensemble status', () => {
  it('shows each phase once and each end of a child once', () => {
    const start = initialEnsembleStatus('en-01890a5d-ac96-774b-bcce-b302099a8057', [
      { bcId, agent: 'embedded' },
    ])
    const child = {
      bcId,
      index: 0,
      agent: 'embedded',
      status: 'IDLE',
      hadSandbox: true,
      reason: 'completed',
      commit: 'abc',
    } as const
    const events: RunEvent[] = [
      { type: 'phase', phase: 'STARTING' },
      { type: 'phase', phase: 'STARTING' },
      { type: 'phase', phase: 'CHILDREN_RUNNING' },
      { type: 'child', child },
      { type: 'child', child },
      { type: 'phase', phase: 'COMPLETED', reason: 'completed' },
      { type: 'phase', phase: 'COMPLETED', reason: 'completed' },
    ]
    let status = start
    const changes = events.map((event, index) => {
      const before = status
      status = foldEnsembleStatus(status, event, index)
      return before !== status
    })
    expect(changes).toEqual([true, false, true, true, false, true, false])
    expect(hasEnded(status)).toBe(true)
    expect(status.phases.map(({ phase }) => ParallelAgentWorkflowStatusUpdate_Phase[phase])).toEqual([
      'STARTING',
      'CHILDREN_RUNNING',
      'COMPLETED',
    ])
    expect(status.message).toBe('The work is done.')
  })

  it('calls a child CREATING until it has had a sandbox, and shows its place while it waits for one', () => {
    const shown = (more: { hadSandbox: boolean; queuePosition?: number }) => {
      const child = { bcId, index: 0, agent: 'embedded', status: 'RUNNING', ...more } as const
      status = foldEnsembleStatus(status, { type: 'child', child }, 1)
      const [{ status: composer, queuePosition } = expect.fail()] = status.children
      return [composerStatusFromWire(composer), queuePosition]
    }
    let status = initialEnsembleStatus('en-01890a5d-ac96-774b-bcce-b302099a8057', [])
    expect(shown({ hadSandbox: false })).toEqual(['CREATING', undefined])
    expect(shown({ hadSandbox: false, queuePosition: 2 })).toEqual(['CREATING', 2])
    expect(shown({ hadSandbox: false })).toEqual(['CREATING', undefined])
    expect(shown({ hadSandbox: true })).toEqual(['RUNNING', undefined])
    // Its sandbox was lost and the host is full.
    expect(shown({ hadSandbox: true, queuePosition: 1 })).toEqual(['RUNNING', 1])
    expect(shown({ hadSandbox: true })).toEqual(['RUNNING', undefined])
  })
})

describe('a child that asks', () => {
  it('is shown with its question, bounded, until it waits no more', () => {
    const child = { bcId, index: 0, agent: 'embedded', status: 'RUNNING', hadSandbox: true } as const
    const question = { questionId: 't/q', text: 'x'.repeat(100_000), options: ['a', 'b'], default: 'b' }
    let status = initialEnsembleStatus('en-01890a5d-ac96-774b-bcce-b302099a8057', [])
    status = foldEnsembleStatus(status, { type: 'child', child: { ...child, question } }, 1)
    expect(status.children[0]?.question).toMatchObject({
      questionId: 't/q',
      options: ['a', 'b'],
      defaultAnswer: 'b',
    })
    expect(status.children[0]?.question?.text.length).toBeLessThan(10_000)
    status = foldEnsembleStatus(status, { type: 'child', child }, 2)
    expect(status.children[0]?.question).toBeUndefined()
  })
})

describe('small codecs', () => {
  it('carry blob ids as 32 bytes', () => {
    const id = `sha256_${'0f'.repeat(32)}` as const
    expect(blobIdToBytes(id)).toEqual(new Uint8Array(32).fill(15))
    expect(blobIdFromBytes(blobIdToBytes(id))).toBe(id)
    expect(() => blobIdFromBytes(new Uint8Array(31))).toThrow(/32 bytes/)
  })

  it('carry sources by name, and unknown ones as UNSPECIFIED', () => {
    expect(sourceFromWire(sourceToWire('GITHUB_CI_AUTOFIX'))).toBe('GITHUB_CI_AUTOFIX')
    expect(sourceFromWire(sourceToWire('8'))).toBe('UNSPECIFIED')
    expect(sourceFromWire(sourceToWire('toString'))).toBe('UNSPECIFIED')
  })
})

function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (value === null || typeof value !== 'object') return true
  return Object.entries(value).every(([key, item]) => key.isWellFormed() && isWellFormed(item))
}
