import { TuttiError, type AgentId } from '@tutti/core'
import {
  AgentService,
  BackgroundComposerService,
  BackgroundComposerStatus,
  CloudAgentWorkflowStatus,
  EnsembleService,
  FollowupMode,
  ParallelAgentWorkflowStatusUpdate_Phase as Phase,
  PullRequestService,
  RepositoryService,
  type StreamConversationResponse,
} from '@tutti/proto'
import { encodeRunEvent } from '@tutti/protocol'
import { createTestRepository } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

let api: DemoApi
const never = new AbortController().signal
const repository = { location: { case: 'registered', value: 'demo' } } as const

beforeAll(async () => {
  api = await startDemoApi({ 'stream.heartbeat': 400 })
})
afterAll(() => api.close())

test('a repository is registered by any folder in it, once', async () => {
  const repositories = api.client(RepositoryService)
  const added = await repositories.addRepository({ path: `${api.files.path}/.git` })
  expect(added.repository).toMatchObject({ name: 'demo', path: api.files.path, defaultBranch: 'main' })
  expect((await repositories.listRepositories({})).repositories).toHaveLength(1)
  await expect(repositories.addRepository({ path: api.files.path, name: 'other' })).rejects.toThrow(
    /already_exists.*registered as demo already/,
  )
  const rival = createTestRepository({ 'b.txt': 'b\n' })
  await expect(repositories.addRepository({ path: rival.path, name: 'demo' })).rejects.toThrow(
    /already_exists.*another name/,
  )
  rival.remove()
  await expect(repositories.addRepository({ path: '/nowhere' })).rejects.toThrow(
    /invalid_argument.*does not exist/,
  )
})

test('pull requests of a repository that nobody registered are not found', async () => {
  const pullRequests = api.client(PullRequestService)
  await expect(pullRequests.listPullRequests({ repository: 'nope' })).rejects.toThrow(/not_found.*nope/)
  for (const known of ['demo', 'https://example.org/x', ''])
    expect((await pullRequests.listPullRequests({ repository: known })).pullRequests).toEqual([])
})

describe('one agent', () => {
  test.each(['connect', 'json', 'grpc'] as const)(
    'starts, streams, takes messages and stops over %s',
    async (protocol) => {
      const agents = api.client(AgentService, protocol)
      const composers = api.client(BackgroundComposerService, protocol)
      const { agent } = await agents.createAgent({ prompt: 'Do it\nnow', repository })
      expect(agent).toMatchObject({ title: 'Do it', status: BackgroundComposerStatus.UNSPECIFIED })
      const bcId = agent!.bcId as `bc-${string}`
      const seen = conversation(composers.streamConversation({ bcId }))
      await api.temporal.emit(bcId, [{ type: 'text_delta', text: 'hi' }])
      const queued = await composers.addAsyncFollowupBackgroundComposer({ bcId, followup: 'More' })
      expect(queued).toMatchObject({ position: 1, workflowStatus: CloudAgentWorkflowStatus.RUNNING })
      await api.temporal.endTurn(bcId, 'completed')
      const stopped = await agents.stopAgent({ bcId, all: true })
      expect(stopped.workflowStatus).toBe(CloudAgentWorkflowStatus.RUNNING)
      await api.temporal.endTurn(bcId, 'stopped_by_user')
      expect(await seen).toEqual([
        'initialState',
        'userMessageAppended: Do it\nnow',
        'status RUNNING',
        'textDelta: hi',
        'status RUNNING',
        'turnEnded: completed',
        'userMessageAppended: More',
        'status RUNNING',
        'status RUNNING',
        'turnEnded: stopped_by_user',
        'status IDLE',
      ])
      const { records } = await api.store.eventLog.read(bcId, 0, { types: ['cancel'] }, never)
      expect(records.map(({ body }) => JSON.parse(body))).toMatchObject([
        { turnId: queued.turnId, reason: 'stopped_by_user', commandId: expect.stringMatching(/^rq-/) },
      ])
    },
  )

  test('an interrupt is in the log at once, before its turn has ended', async () => {
    const bcId = await startAgent('first')
    const composers = api.client(BackgroundComposerService)
    const before = await api.store.catalog.agents.get('local', bcId, never)
    const answer = await composers.addAsyncFollowupBackgroundComposer({
      bcId,
      followup: 'Now this',
      tutti: { mode: FollowupMode.INTERRUPT },
    })
    expect(answer.position).toBe(1)
    const { records } = await api.store.eventLog.read(bcId, 0, { types: ['cancel'] }, never)
    expect(records.map(({ body }) => JSON.parse(body))).toMatchObject([
      { turnId: before.state.current!.turnId, reason: 'interrupted' },
    ])
  })

  test('a stream that is opened right after a follow-up to an idle agent does not end before the turn', async () => {
    const bcId = await startAgent('first')
    await api.temporal.endTurn(bcId, 'completed')
    const composers = api.client(BackgroundComposerService)
    const offsetKey = (await api.client(AgentService).getAgent({ bcId })).agent!.headOffsetKey
    // What a slow worker does: the command is accepted, its events come later.
    const real = api.temporal.agentCommand.bind(api.temporal)
    api.temporal.agentCommand = async (_input, { command }) => ({
      state: 'RUNNING',
      position: 0,
      turnId: 'turn' in command ? command.turn.turnId : '',
      endingTurnId: '',
    })
    await composers.addAsyncFollowupBackgroundComposer({ bcId, followup: 'More' })
    api.temporal.agentCommand = real
    const beat = Promise.withResolvers<void>()
    const seen = conversation(composers.streamConversation({ bcId, offsetKey }), beat.resolve)
    // A heartbeat proves that it has read to the end and waits.
    await beat.promise
    const { state } = await api.store.catalog.agents.get('local', bcId, never)
    await api.temporal.emit(bcId, [{ type: 'user_message', turnId: 'tn-1', text: 'More', source: 'API' }])
    await api.temporal.enter(bcId, { ...state, status: 'IDLE', reason: 'completed', queue: [] })
    expect(await seen).toEqual(['userMessageAppended: More', 'status IDLE'])
  })

  test('resumes after any offset with exactly the rest, and ends at once when there is none', async () => {
    const bcId = await startAgent('x')
    await api.temporal.emit(
      bcId,
      [1, 2, 3].map((number) => ({ type: 'text_delta', text: String(number) })),
    )
    await api.temporal.endTurn(bcId, 'completed')
    const composers = api.client(BackgroundComposerService)
    const all: { offsetKey: string; text: string }[] = []
    for await (const { message } of composers.streamConversation({ bcId })) {
      if (message.case === 'initialState') continue
      all.push({ offsetKey: (message.value as { offsetKey: string }).offsetKey, text: textOf(message) })
    }
    for (const [index, { offsetKey }] of all.entries()) {
      const rest = await conversation(composers.streamConversation({ bcId, offsetKey }))
      expect(rest).toEqual(all.slice(index + 1).map(({ text }) => text))
    }
  })

  test('a quiet stream has heartbeats with the last offset', async () => {
    const bcId = await startAgent('quiet')
    const offsets: string[] = []
    const beats: string[] = []
    for await (const { message } of api.client(BackgroundComposerService).streamConversation({ bcId })) {
      if (message.case === 'workflowStatusWithOffset') offsets.push(message.value.offsetKey)
      if (message.case !== 'interactionUpdateWithOffset') continue
      if (message.value.interactionUpdate?.message.case === 'heartbeat') beats.push(message.value.offsetKey)
      if (beats.length === 2) break
    }
    expect(beats).toEqual([offsets.at(-1), offsets.at(-1)])
  })

  test('waits for the answer to a question, once', async () => {
    const bcId = await startAgent('ask')
    const agents = api.client(AgentService)
    await expect(agents.answerQuestion({ bcId, answer: 'yes' })).rejects.toThrow(/failed_precondition/)
    const { logSequence } = await api.store.catalog.agents.get('local', bcId, never)
    await api.store.catalog.agents.project(
      bcId,
      { logSequence, openQuestion: { questionId: 'q1', text: 'ok?' } },
      never,
    )
    expect(await agents.answerQuestion({ bcId, answer: 'yes' })).toMatchObject({ questionId: 'q1' })
    expect(await agents.answerQuestion({ bcId, answer: 'yes' })).toMatchObject({ questionId: 'q1' })
    await expect(agents.answerQuestion({ bcId, answer: 'no' })).rejects.toThrow(/answered already/)
    const { records } = await api.store.eventLog.read(bcId, 0, { types: ['answer'] }, never)
    expect(records.map(({ body }) => JSON.parse(body))).toMatchObject([{ questionId: 'q1', text: 'yes' }])
  })

  test('a delivery answers with what the log says about this request', async () => {
    const bcId = await startAgent('deliver')
    await api.temporal.endTurn(bcId, 'completed')
    const before = api.temporal.commands.length
    const call = api.client(BackgroundComposerService).makePRBackgroundComposer({ bcId })
    await expect.poll(() => api.temporal.commands.length).toBe(before + 1)
    const { request } = api.temporal.commands.at(-1)!
    expect(request).toMatchObject({
      command: { type: 'deliver' },
      planBlobId: expect.stringMatching(/^sha256_/),
    })
    // What the forge records before the worker says so.
    const { url, number } = await api.store.catalog.pullRequests.upsert(
      {
        repository: 'demo',
        owner: 'local',
        title: 'Do',
        body: '',
        head: 'b',
        headCommit: 'c',
        base: 'main',
        baseCommit: 'd',
        draft: false,
        state: 'open',
        source: bcId as AgentId,
        createdAt: 1,
        updatedAt: 1,
      },
      (count) => `tutti://demo/${count}`,
      new AbortController().signal,
    )
    await api.temporal.emit(bcId, [
      { type: 'delivery', requestId: 'of another', outcome: 'nothing_to_deliver' },
      {
        type: 'delivery',
        requestId: request.requestId,
        outcome: 'delivered',
        branch: 'b',
        commit: 'c',
        pullRequest: { url, number },
      },
    ])
    expect(await call).toMatchObject({
      prUrl: url,
      branchName: 'b',
      hasCommits: true,
      repo: 'demo',
      tutti: { number: BigInt(number) },
    })
  })
})

describe('an ensemble', () => {
  const spec = { prompt: 'Do', repository, count: 3 }

  test('is stored with its children before its workflow starts', async () => {
    const composers = api.client(BackgroundComposerService)
    const { ensembleId, bcIds } = await composers.startParallelAgentWorkflow({ spec })
    expect(bcIds).toHaveLength(3)
    const input = api.temporal.started.ensembles.find((started) => started.ensembleId === ensembleId)
    expect(input?.children.map(({ bcId }) => bcId)).toEqual(bcIds)
    const { ensemble } = await api.client(EnsembleService).getEnsemble({ ensembleId })
    expect(ensemble).toMatchObject({ title: 'Do', spec: { prompt: 'Do', count: 3, strategy: 'merge' } })
    expect(ensemble?.attempts.map(({ bcId }) => bcId)).toEqual(bcIds)
  })

  test('of 50 children has an input of at most 16 KiB', async () => {
    const agents = Array.from({ length: 50 }, (_, index) => ({
      spec: `command:tool-${index} {prompt}`,
      promptSuffix: String(index),
    }))
    const { ensembleId } = await api
      .client(BackgroundComposerService)
      .startParallelAgentWorkflow({ spec: { ...spec, count: 50, agents, title: 'ä'.repeat(120) } })
    const input = api.temporal.started.ensembles.find((started) => started.ensembleId === ensembleId)
    expect(Buffer.byteLength(JSON.stringify(input))).toBeLessThanOrEqual(16 << 10)
  })

  test('gives the first answer again for the same key, and names the key for another body', async () => {
    const composers = api.client(BackgroundComposerService)
    const before = api.temporal.started.ensembles.length
    const call = () => composers.startParallelAgentWorkflow({ spec, idempotencyKey: 'one-key' })
    const answers = await Promise.all([call(), call(), call()])
    expect(new Set(answers.map(({ ensembleId }) => ensembleId)).size).toBe(1)
    expect(api.temporal.started.ensembles).toHaveLength(before + 1)
    await expect(
      composers.startParallelAgentWorkflow({ spec: { ...spec, count: 2 }, idempotencyKey: 'one-key' }),
    ).rejects.toThrow(/already_exists.*one-key/)
  })

  test('shows each phase once and each end of a child once, and resumes by its own offset', async () => {
    const composers = api.client(BackgroundComposerService)
    const { ensembleId, bcIds } = await composers.startParallelAgentWorkflow({ spec: { ...spec, count: 1 } })
    const child = {
      bcId: bcIds[0] as `bc-${string}`,
      index: 0,
      agent: 'embedded',
      status: 'IDLE',
      hadSandbox: true,
      reason: 'completed',
    } as const
    const events = [
      { type: 'phase', phase: 'STARTING' },
      { type: 'phase', phase: 'CHILDREN_RUNNING' },
      { type: 'child', child },
      { type: 'child', child },
      { type: 'phase', phase: 'GATHERING' },
      { type: 'phase', phase: 'COMPLETED', reason: 'completed' },
    ] as const
    const producer = { id: 'workflow/test', epoch: 0, sequence: 1 }
    const { catalog, eventLog } = api.store
    const log = ensembleId as `en-${string}`
    const { last } = await eventLog.append(log, producer, events.map(encodeRunEvent), never)
    await catalog.ensembles.project(
      log,
      { phase: 'COMPLETED', reason: 'completed', logSequence: last },
      never,
    )
    const read = async (offsetKey?: string) => {
      const updates: { phase: string; ended: number; offsetKey: string }[] = []
      const stream = composers.streamParallelAgentWorkflowStatus({
        ensembleId,
        ...(offsetKey ? { offsetKey } : {}),
      })
      for await (const update of stream) {
        const ended = update.children.filter(({ endedAtMs }) => endedAtMs > 0n).length
        updates.push({ phase: Phase[update.phase]!, ended, offsetKey: update.offsetKey })
      }
      return updates
    }
    const all = await read()
    expect(all.map(({ phase, ended }) => `${phase} ${ended}`)).toEqual([
      'UNSPECIFIED 0',
      'STARTING 0',
      'CHILDREN_RUNNING 0',
      'CHILDREN_RUNNING 1',
      'GATHERING 1',
      'COMPLETED 1',
    ])
    for (const [index, { offsetKey }] of all.entries())
      expect(await read(offsetKey)).toEqual(all.slice(index + 1))
  })

  test('is started by the sweep when Temporal did not answer, under the same id', async () => {
    const composers = api.client(BackgroundComposerService)
    api.temporal.down = new TuttiError('unavailable', 'Temporal does not answer.')
    const refused = composers.startParallelAgentWorkflow({ spec, idempotencyKey: 'swept' })
    await expect(refused).rejects.toThrow(/unavailable.*en-.*is stored and starts as soon as/)
    api.temporal.down = undefined
    const before = api.temporal.started.ensembles.length
    await expect.poll(() => api.temporal.started.ensembles.length, { timeout: 12_000 }).toBe(before + 1)
    const { ensembleId } = await composers.startParallelAgentWorkflow({ spec, idempotencyKey: 'swept' })
    expect(api.temporal.started.ensembles.at(-1)?.ensembleId).toBe(ensembleId)
    expect(api.temporal.started.ensembles).toHaveLength(before + 1)
  })

  test('stop reaches the parent and the running turns of its children', async () => {
    const composers = api.client(BackgroundComposerService)
    const { ensembleId, bcIds } = await composers.startParallelAgentWorkflow({ spec: { ...spec, count: 2 } })
    const [bcId] = bcIds as [`bc-${string}`]
    const turn = { turnId: 'tn-child', promptBlobId: `sha256_${'0'.repeat(64)}`, source: 'API' } as const
    await api.temporal.enter(bcId, { status: 'RUNNING', paused: false, current: turn, queue: [] })
    await api.client(EnsembleService).stopEnsemble({ ensembleId })
    expect(api.temporal.stopped).toContain(ensembleId)
    const { records } = await api.store.eventLog.read(bcId, 0, { types: ['cancel'] }, never)
    expect(records.map(({ body }) => JSON.parse(body))).toMatchObject([
      { turnId: 'tn-child', reason: 'stopped_by_user' },
    ])
  })
})

async function startAgent(prompt: string): Promise<`bc-${string}`> {
  const { agent } = await api.client(AgentService).createAgent({ prompt, repository })
  return agent!.bcId as `bc-${string}`
}

async function conversation(
  messages: AsyncIterable<StreamConversationResponse>,
  onHeartbeat: () => void = () => undefined,
): Promise<string[]> {
  const seen: string[] = []
  for await (const { message } of messages) {
    const text = textOf(message)
    if (text === 'heartbeat') onHeartbeat()
    else seen.push(text)
  }
  return seen
}

function textOf(message: StreamConversationResponse['message']): string {
  if (message.case === 'workflowStatusWithOffset')
    return `status ${CloudAgentWorkflowStatus[message.value.workflowStatus]}`
  if (message.case !== 'interactionUpdateWithOffset') return message.case ?? ''
  const update = message.value.interactionUpdate!.message
  switch (update.case) {
    case 'userMessageAppended':
      return `userMessageAppended: ${update.value.userMessage?.text}`
    case 'textDelta':
      return `textDelta: ${update.value.text}`
    case 'turnEnded':
      return `turnEnded: ${update.value.reason}`
    default:
      return update.case ?? ''
  }
}
