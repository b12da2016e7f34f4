import { ensembleResult } from '@tutti/cli'
import type { AgentId, EnsembleId } from '@tutti/core'
import {
  BackgroundComposerService,
  BackgroundComposerStatus,
  CloudAgentWorkflowStatus,
  EnsembleService,
  ParallelAgentWorkflowStatusUpdate_Phase as Phase,
} from '@tutti/proto'
import { encodeRunEvent, type EnsembleResult, type RunEvent } from '@tutti/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

const never = new AbortController().signal
let api: DemoApi

beforeAll(async () => {
  api = await startDemoApi()
})
afterAll(() => api.close())

async function start(count: number) {
  const spec = {
    prompt: 'Do',
    repository: { location: { case: 'registered', value: 'demo' } },
    count,
  } as const
  const { ensembleId, bcIds } = await api
    .client(BackgroundComposerService)
    .startParallelAgentWorkflow({ spec })
  return { ensembleId: ensembleId as EnsembleId, bcIds: bcIds as AgentId[] }
}

const emit = (ensembleId: EnsembleId, sequence: number, events: readonly RunEvent[]) =>
  api.store.eventLog.append(
    ensembleId,
    { id: 'workflow/test', epoch: 0, sequence },
    events.map(encodeRunEvent),
    never,
  )

const get = async (ensembleId: EnsembleId) =>
  (await api.client(EnsembleService).getEnsemble({ ensembleId })).ensemble!

const phaseEvents: readonly RunEvent[] = [
  { type: 'phase', phase: 'STARTING' },
  { type: 'phase', phase: 'CHILDREN_RUNNING' },
  { type: 'phase', phase: 'GATHERING' },
  { type: 'phase', phase: 'SYNTHESIZING' },
  { type: 'phase', phase: 'COMPLETED', reason: 'completed' },
]

test('run -o json prints exactly the result that the worker has stored', async () => {
  const { ensembleId, bcIds } = await start(4)
  const [first, second, third, fourth] = bcIds as [AgentId, AgentId, AgentId, AgentId]
  const attempt = { commit: 'c1', files_changed: 2, agent: 'embedded', summary: 'did ünï' }
  const conflicts = (['content', 'binary', 'modify_delete', 'mode', 'add_add', 'type'] as const).map(
    (kind, line) => ({
      path: `${kind}.ts`,
      kind,
      line,
      base: 'base\n',
      versions: [
        { bc_id: first, text: 'a\n' },
        { bc_id: second, text: '' },
      ],
    }),
  )
  const stored: Omit<EnsembleResult, 'timings'> = {
    ensemble_id: ensembleId,
    phase: 'COMPLETED',
    reason: 'completed',
    attempts: [
      { ...attempt, bc_id: first, status: 'IDLE', reason: 'completed', check: { exit_code: 0 } },
      { ...attempt, bc_id: second, status: 'ARCHIVED', reason: 'archived', check: { exit_code: null } },
      { ...attempt, bc_id: third, status: 'ERROR', reason: 'agent_error', check: null, files_changed: 0 },
      { ...attempt, bc_id: fourth, status: 'EXPIRED', reason: 'expired', check: { exit_code: 7 } },
    ],
    synthesis: {
      strategy: 'merge',
      commit: 'c2',
      branch: 'tutti/x',
      included: [first, second],
      check: { exit_code: null, tail: 'killed' },
    },
    report: {
      conflicts,
      equal_groups: [[first, second]],
      failures: [
        { bc_id: third, reason: 'agent_error', message: 'boom', log_command: `tutti agent events ${third}` },
      ],
      left_out: [{ bc_id: fourth, why: 'Another attempt was chosen.' }],
    },
    pull_request: { url: 'tutti://demo/1', number: 1, branch: 'tutti/x' },
  }
  const blob = await api.blobs.put(new TextEncoder().encode(JSON.stringify(stored)), never)
  const { last } = await emit(ensembleId, 1, phaseEvents)
  const end = { logSequence: last, phase: 'COMPLETED', reason: 'completed', resultBlobId: blob } as const
  await api.store.catalog.ensembles.project(ensembleId, end, never)

  const { timings, ...printed } = ensembleResult(await get(ensembleId))
  expect(printed).toEqual(stored)
  expect(Object.keys(timings)).toEqual(['STARTING', 'CHILDREN_RUNNING', 'GATHERING', 'SYNTHESIZING'])
  // Without check, synthesis and pull request these are null, not left out.
  const bare = { ...stored, synthesis: null, pull_request: null }
  const other = await api.blobs.put(new TextEncoder().encode(JSON.stringify(bare)), never)
  await api.store.catalog.ensembles.project(
    ensembleId,
    { ...end, logSequence: last + 1, resultBlobId: other },
    never,
  )
  expect(ensembleResult(await get(ensembleId))).toMatchObject({ synthesis: null, pull_request: null })
})

test('GetEnsemble has what the check of an attempt printed, which run -o json leaves out', async () => {
  const { ensembleId, bcIds } = await start(1)
  const [bcId] = bcIds as [AgentId]
  const attempt = { bcId, status: 'IDLE', reason: 'completed', summary: '', detail: '' } as const
  const commits = { base: 'a'.repeat(40), commit: 'b'.repeat(40), filesChanged: 1 }
  const check = { exitCode: 7, tail: 'one test failed', durationMs: 5 }
  await api.store.catalog.attempts.put(ensembleId, { ...attempt, ...commits, check }, never)
  const result = {
    ensemble_id: ensembleId,
    phase: 'COMPLETED',
    reason: 'completed',
    attempts: [
      {
        bc_id: bcId,
        status: 'IDLE',
        reason: 'completed',
        commit: commits.commit,
        files_changed: 1,
        check: { exit_code: 7 },
        agent: 'embedded',
        summary: '',
      },
    ],
    synthesis: null,
    report: { conflicts: [], equal_groups: [], failures: [], left_out: [] },
    pull_request: null,
    timings: {},
  } satisfies EnsembleResult
  const blob = await api.blobs.put(new TextEncoder().encode(JSON.stringify(result)), never)
  const { last } = await emit(ensembleId, 1, phaseEvents)
  const end = { logSequence: last, phase: 'COMPLETED', reason: 'completed', resultBlobId: blob } as const
  await api.store.catalog.ensembles.project(ensembleId, end, never)
  const ensemble = await get(ensembleId)
  expect(ensemble.attempts[0]!.check).toMatchObject({ exitCode: 7, outputTail: 'one test failed' })
  expect(ensembleResult(ensemble).attempts[0]!.check).toEqual({ exit_code: 7 })
})

test('GetEnsemble has each phase once with when it began, and the place of a child that waits', async () => {
  const { ensembleId, bcIds } = await start(2)
  const [first, second] = bcIds as [AgentId, AgentId]
  expect((await get(ensembleId)).phases).toEqual([])
  const child = (bcId: AgentId, queuePosition?: number): RunEvent => ({
    type: 'child',
    child: {
      bcId,
      index: bcIds.indexOf(bcId),
      agent: 'embedded',
      status: 'RUNNING',
      hadSandbox: false,
      ...(queuePosition !== undefined && { queuePosition }),
    },
  })
  const before = Date.now()
  await emit(ensembleId, 1, [
    phaseEvents[0]!,
    phaseEvents[0]!,
    phaseEvents[1]!,
    child(first, 1),
    child(second, 2),
  ])
  await emit(ensembleId, 2, [child(first), child(second, 1)])
  const { phases, attempts } = await get(ensembleId)
  expect(phases.map(({ phase }) => phase)).toEqual([Phase.STARTING, Phase.CHILDREN_RUNNING])
  for (const { startedAtMs } of phases) {
    expect(Number(startedAtMs)).toBeGreaterThanOrEqual(before)
    expect(Number(startedAtMs)).toBeLessThanOrEqual(Date.now())
  }
  expect(attempts.map(({ queuePosition }) => queuePosition)).toEqual([undefined, 1])
  expect(attempts[0]).toMatchObject({
    status: BackgroundComposerStatus.UNSPECIFIED,
    workflowStatus: CloudAgentWorkflowStatus.UNSPECIFIED,
  })
})
