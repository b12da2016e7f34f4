import type { MessageInitShape } from '@bufbuild/protobuf'
import { saveAgentState } from '@tutti/activities'
import type { AgentId } from '@tutti/core'
import {
  AgentService,
  BackgroundComposerService,
  CloudAgentWorkflowStatus,
  PersistedMetadataVersion,
  type StreamConversationRequestSchema,
  type InitialState,
  type StreamConversationResponse,
} from '@tutti/proto'
import { encodeOffset, encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { blobIdFromBytes, blobIdToBytes } from '@tutti/protocol/wire'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

let api: DemoApi
const never = new AbortController().signal
const repository = { location: { case: 'registered', value: 'demo' } } as const

beforeAll(async () => {
  api = await startDemoApi()
})
afterAll(() => api.close())

async function startAgent(): Promise<AgentId> {
  const { agent } = await api.client(AgentService).createAgent({ prompt: 'Do it', repository })
  return agent!.bcId as AgentId
}

/** What a worker does at a turn's end. */
async function save(bcId: AgentId, upTo?: number): Promise<void> {
  const { eventLog, catalog } = api.store
  const position = upTo ?? (await eventLog.head(bcId, never)).last
  const once = { id: `state/${position}`, epoch: 0, sequence: 1 }
  await saveAgentState(
    { eventLog, catalog, blobs: api.blobs, log: { info() {}, warn() {} } },
    {
      bcId,
      owner: 'local',
      upTo: position,
      append: (event) => eventLog.append(bcId, once, [encodeRunEvent(event)], never),
    },
    never,
  )
}

async function emit(bcId: AgentId, ...events: RunEvent[]): Promise<void> {
  await api.temporal.emit(bcId, events)
}

async function read(request: MessageInitShape<typeof StreamConversationRequestSchema>) {
  const messages: StreamConversationResponse['message'][] = []
  for await (const { message } of api.client(BackgroundComposerService).streamConversation(request))
    messages.push(message)
  return messages
}

const named = (messages: readonly StreamConversationResponse['message'][]) =>
  messages.map(({ case: name, value }) =>
    name === 'interactionUpdateWithOffset' ? value.interactionUpdate?.message.case : name,
  )

const initialOf = (messages: readonly StreamConversationResponse['message'][]): InitialState =>
  messages.find((message) => message.case === 'initialState')!.value

describe('saved states', () => {
  test('a stream without an offset begins with the newest one and goes on behind it', async () => {
    const bcId = await startAgent()
    await emit(bcId, { type: 'text_delta', text: 'one' })
    await end(bcId)
    const before = await read({ bcId, offsetKey: encodeOffset(bcId, 0) })
    expect(named(before)).toContain('textDelta')
    await save(bcId)
    const messages = await read({ bcId })
    expect(named(messages)).toEqual(['initialState', 'workflowStatusWithOffset'])
    expect(initialOf(messages)).toMatchObject({
      workflowStatus: CloudAgentWorkflowStatus.IDLE,
      cloudAgentState: {
        conversationState: {
          turns: [{ userMessage: { text: 'Do it' }, text: 'one', reason: 'completed' }],
        },
        numCompletedTurns: 1,
        tutti: { reason: 'completed' },
      },
    })
    expect(messages[1]?.value).toMatchObject({
      workflowStatus: CloudAgentWorkflowStatus.IDLE,
      tutti: { reason: 'completed' },
    })
    // A second turn: what is newer than the state comes behind it, and a client that has an offset gets no state at its start.
    const offsetKey = (messages[1]!.value as { offsetKey: string }).offsetKey
    await api.client(BackgroundComposerService).addAsyncFollowupBackgroundComposer({ bcId, followup: 'More' })
    await emit(bcId, { type: 'text_delta', text: 'two' })
    await end(bcId)
    const updates = ['userMessageAppended', 'workflowStatusWithOffset', 'textDelta', 'turnEnded']
    const late = named(await read({ bcId }))
    expect(late).toEqual(['initialState', 'workflowStatusWithOffset', ...updates, 'workflowStatusWithOffset'])
    const resumed = named(await read({ bcId, offsetKey }))
    expect(resumed).toEqual(['cloudAgentStateWithIdAndOffset', ...updates, 'workflowStatusWithOffset'])
    await save(bcId)
    const newest = await read({ bcId })
    expect(initialOf(newest).cloudAgentState?.conversationState?.turns.map(({ text }) => text)).toEqual([
      'one',
      'two',
    ])
  })

  test('a state that is saved is streamed with its id and offset, once', async () => {
    const bcId = await startAgent()
    await emit(bcId, { type: 'text_delta', text: 'x' })
    const { last } = await api.store.eventLog.head(bcId, never)
    await save(bcId, last)
    await save(bcId, last)
    await end(bcId)
    const messages = await read({ bcId, offsetKey: encodeOffset(bcId, last) })
    expect(named(messages)).toEqual([
      'cloudAgentStateWithIdAndOffset',
      'turnEnded',
      'workflowStatusWithOffset',
    ])
    const { savedState } = await api.store.catalog.agents.get('local', bcId, never)
    expect(messages[0]?.value).toMatchObject({
      offsetKey: encodeOffset(bcId, last + 1),
      blobId: blobIdToBytes(savedState!.blobId),
      cloudAgentState: { lastInteractionUpdateOffsetKey: encodeOffset(bcId, last) },
    })
    expect(await api.store.catalog.blobRefs.has('local', savedState!.blobId, never)).toBe(true)
    expect(await api.store.catalog.blobRefs.has('ann', savedState!.blobId, never)).toBe(false)
  })

  test('info has the state and what the catalog keeps of it; an unknown version is refused', async () => {
    const composers = api.client(BackgroundComposerService)
    const bcId = await startAgent()
    expect(await composers.getBackgroundComposerInfo({ bcId })).not.toHaveProperty('metadata')
    await save(bcId)
    const { savedState } = await api.store.catalog.agents.get('local', bcId, never)
    const info = await composers.getBackgroundComposerInfo({ bcId })
    expect(info).toMatchObject({
      cloudAgentState: { lastInteractionUpdateOffsetKey: savedState!.offsetKey },
      metadata: {
        cloudAgentStateBlobId: blobIdToBytes(savedState!.blobId),
        offsetKey: savedState!.offsetKey,
        timestampMs: BigInt(savedState!.savedAt),
        workflowStatus: CloudAgentWorkflowStatus.RUNNING,
        version: PersistedMetadataVersion.PERSISTED_METADATA_VERSION_1,
      },
    })
    const newer = { ...savedState!, version: 2, offsetKey: encodeOffset(bcId, 1_000_000) }
    expect(await api.store.catalog.agents.saveState(bcId, newer, never)).toBe(true)
    await expect(composers.getBackgroundComposerInfo({ bcId })).rejects.toThrow(
      /failed_precondition.*format 2.*Update Tutti/,
    )
    await expect(read({ bcId })).rejects.toThrow(/failed_precondition.*format 2/)
    // An older worker leaves it alone.
    await emit(bcId, { type: 'text_delta', text: 'x' })
    await save(bcId)
    expect((await api.store.catalog.agents.get('local', bcId, never)).savedState).toEqual(newer)
  })

  test('the blobs that a state names come beside it or before it, those of the owner that the client has not', async () => {
    const bcId = await startAgent()
    const own = await api.blobs.put(new TextEncoder().encode('"long output"'), never)
    await api.store.catalog.blobRefs.add('local', [own], never)
    const foreign = await api.blobs.put(new TextEncoder().encode('"of somebody else"'), never)
    for (const [callId, blobId] of [
      ['c1', own],
      ['c2', foreign],
    ] as const) {
      const result = { truncated: true, bytes: 40_000, blobId }
      await emit(bcId, { type: 'tool_call_completed', callId, toolName: 'shell', outcome: 'ok', result })
    }
    await end(bcId)
    await save(bcId)
    const texts = (list: readonly { readonly id: Uint8Array; readonly value: Uint8Array }[]) =>
      list.map(({ value }) => new TextDecoder().decode(value))
    const beside = initialOf(await read({ bcId }))
    expect(texts(beside.preFetchedBlobs)).toEqual(['Do it', '"long output"'])
    const first = await read({ bcId, shouldSendPrefetchedBlobsFirst: true })
    expect(named(first).slice(0, 2)).toEqual(['prefetchedBlobs', 'initialState'])
    expect(texts((first[0]!.value as { blobs: InitialState['preFetchedBlobs'] }).blobs)).toEqual([
      'Do it',
      '"long output"',
    ])
    expect(initialOf(first).preFetchedBlobs).toEqual([])
    const known = [...beside.preFetchedBlobs.map(({ id }) => id), beside.blobId]
    const again = await read({ bcId, shouldSendPrefetchedBlobsFirst: true, preFetchedBlobIds: known })
    expect(named(again)[0]).toBe('initialState')
    expect(initialOf(again)).not.toHaveProperty('cloudAgentState')
    expect(blobIdFromBytes(initialOf(again).blobId)).toBe(blobIdFromBytes(beside.blobId))
  })

  test('a state that is lost is made anew from the log, and streams begin with the log', async () => {
    const bcId = await startAgent()
    await save(bcId)
    const saved = (await api.store.catalog.agents.get('local', bcId, never)).savedState!
    const gone = { ...saved, blobId: `sha256_${'0'.repeat(64)}`, offsetKey: `${saved.offsetKey}~` } as const
    expect(await api.store.catalog.agents.saveState(bcId, gone, never)).toBe(true)
    await emit(bcId, { type: 'text_delta', text: 'x' })
    await end(bcId)
    expect(named(await read({ bcId })).slice(0, 2)).toEqual(['initialState', 'userMessageAppended'])
    await save(bcId)
    expect(initialOf(await read({ bcId })).cloudAgentState).toMatchObject({
      conversationState: { turns: [{ userMessage: { text: 'Do it' }, text: 'x' }] },
    })
  })
})

/** Ends the turn, so that a stream ends too. */
const end = (bcId: AgentId) => api.temporal.endTurn(bcId, 'completed')
