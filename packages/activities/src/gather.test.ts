import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createMemoryBlobStore } from '@tutti/blob-store'
import {
  agentId,
  ensembleId,
  initialAgentState,
  mirrorRefs,
  noCrashPoints,
  type AgentId,
  type Attempt,
} from '@tutti/core'
import { createMirrors, type Mirror } from '@tutti/git'
import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { findStrategy } from '@tutti/synthesis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createConfigBlobs } from './config-blobs.ts'
import type { ChildEnd } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { createGather, findEqualGroups } from './gather.ts'

const never = new AbortController().signal
const ensemble = ensembleId(Date.now(), randomBytes(10))
const ids = Array.from({ length: 4 }, () => agentId(Date.now(), randomBytes(10)))
const owner = 'local'

let folder: string
let store: SqliteStore
let mirror: Mirror
let base: string
let gather: (children: readonly ChildEnd[]) => ReturnType<ReturnType<typeof createGather>>

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'tutti-gather-')))
  const source = join(folder, 'source')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=u', '-c', 'user.email=u@localhost', ...args], { stdio: 'ignore' })
  git('init', '-q', '-b', 'main', source)
  await writeFile(join(source, 'README.md'), 'hello\n')
  git('-C', source, 'add', '-A')
  git('-C', source, 'commit', '-q', '-m', 'first')
  store = await createSqliteStore({ path: ':memory:' })
  const { name } = await store.catalog.repositories.add(owner, 'repo', source, 1, never)
  const mirrors = createMirrors({ root: join(folder, 'mirrors') })
  mirror = await mirrors.open(source, never)
  base = await mirror.resolve('main', never)
  await mirror.updateRef(mirrorRefs.base(ensemble), base, never)
  const blobs = createMemoryBlobStore()
  const config = { version: 1, repository: name, strategy: 'pick' }
  const configBlobId = await blobs.put(new TextEncoder().encode(JSON.stringify(config)), never)
  const common = { owner, title: 't', repository: name, configBlobId, createdAt: 1 }
  await store.catalog.ensembles.insert(
    { ...common, ensembleId: ensemble, strategy: 'pick', childIds: ids },
    ids.map((bcId, childIndex) => ({
      ...common,
      bcId,
      childIndex,
      ensembleId: ensemble,
      agentSpec: 'e',
      state: initialAgentState,
    })),
    never,
  )
  // Only what gathering uses.
  const deps = {
    catalog: store.catalog,
    mirrors,
    blobs,
    crashPoint: noCrashPoints,
    strategyOf: findStrategy,
  } as unknown as ActivityDeps
  gather = (children) =>
    new MockActivityEnvironment().run(createGather(deps, createConfigBlobs(blobs)), {
      ensembleId: ensemble,
      owner,
      configBlobId,
      children,
    })
})
afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

async function attempt(
  bcId: AgentId,
  text: string | undefined,
  more: Partial<Attempt> = {},
): Promise<Attempt> {
  const commit =
    text === undefined
      ? base
      : (
          await mirror.commit(
            {
              parent: base,
              changes: [
                {
                  path: Buffer.from('a.txt'),
                  mode: '100644',
                  size: text.length,
                  content: async function* () {
                    yield Buffer.from(text)
                  },
                },
              ],
              ref: mirrorRefs.checkpoint(bcId),
              message: `Checkpoint of ${bcId}`,
              atMs: 1,
            },
            never,
          )
        ).commit
  const made: Attempt = {
    bcId,
    status: 'IDLE',
    reason: text === undefined ? 'nothing_to_deliver' : 'completed',
    base,
    commit,
    filesChanged: text === undefined ? 0 : 1,
    summary: '',
    detail: '',
    ...more,
  }
  await store.catalog.attempts.put(ensemble, made, never)
  return made
}

const end = ({ bcId, status, reason }: Attempt): ChildEnd => ({
  bcId,
  status: status as ChildEnd['status'],
  reason,
})

test('ENS-06: attempts with the same tree are one group, whatever their commits are called', async () => {
  const made = [
    await attempt(ids[0]!, 'same'),
    await attempt(ids[1]!, 'other'),
    await attempt(ids[2]!, 'same'),
    await attempt(ids[3]!, 'same'),
  ]
  expect(new Set(made.map(({ commit }) => commit)).size).toBe(4)
  expect(await findEqualGroups(mirror, made, never)).toEqual([[ids[0], ids[2], ids[3]]])
  expect(await gather(made.map(end))).toMatchObject({ candidates: 4, unchanged: 0 })
})

test('ENS-07: unchanged attempts are counted and no candidates; a child that recorded nothing gets an attempt that says so', async () => {
  const made = [await attempt(ids[0]!, undefined), await attempt(ids[1]!, 'changed')]
  const lost: ChildEnd = { bcId: ids[2]!, status: 'ERROR', reason: 'internal' }
  const answer = await gather([...made.map(end), lost])
  expect(answer).toMatchObject({ candidates: 1, unchanged: 1, alternatives: [[ids[1]]] })
  const attempts = await store.catalog.attempts.list(ensemble, never)
  expect(attempts.find(({ bcId }) => bcId === ids[2])).toMatchObject({
    status: 'ERROR',
    reason: 'internal',
    detail: 'It ended before it could record what it made.',
  })
  expect(await gather([...made.map(end), lost])).toEqual(answer)
})

test('ENS-02: without a candidate no strategy is asked and no mirror is needed', async () => {
  const failed = await attempt(ids[0]!, 'changed', { status: 'ERROR', reason: 'agent_error' })
  await rm(join(folder, 'mirrors'), { recursive: true, force: true })
  expect(await gather([end(failed)])).toEqual({
    candidates: 0,
    unchanged: 0,
    alternatives: [],
    additions: [],
  })
})
