import type { DescMethod, JsonObject } from '@bufbuild/protobuf'
import { agentId } from '@tutti/core'
import {
  AgentService,
  BackgroundComposerService,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
} from '@tutti/proto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

let api: DemoApi
const services = [
  AgentService,
  BackgroundComposerService,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
]
const never = new AbortController().signal

beforeAll(async () => {
  api = await startDemoApi()
})
afterAll(() => api.close())

/** Fields that name a thing which must exist; deletion of objects has no method yet. */
const idFields: Record<string, { readonly unknown: string; readonly malformed: readonly string[] }> = {
  bc_id: {
    unknown: 'bc-01890a5d-ac96-774b-bcce-b302099a8057',
    malformed: [
      'bc-1',
      'en-01890a5d-ac96-774b-bcce-b302099a8057',
      '../bc',
      'BC-01890A5D-AC96-774B-BCCE-B302099A8057',
      ' ',
    ],
  },
  ensemble_id: {
    unknown: 'en-01890a5d-ac96-774b-bcce-b302099a8057',
    malformed: ['en-', 'bc-01890a5d-ac96-774b-bcce-b302099a8057', 'x'.repeat(5000)],
  },
  workflow_id: { unknown: 'en-01890a5d-ac96-774b-bcce-b302099a8057', malformed: ['w'] },
}
/** What else a method needs to be asked. */
const rest: Record<string, JsonObject> = {
  AddAsyncFollowupBackgroundComposer: { followup: 'x' },
  AnswerQuestion: { answer: 'x' },
  FileSync: { files: [{ path: 'YQ==' }] },
}
/** Whose fields may all be left out. */
const needsNothing = ({ name }: DescMethod) => name.startsWith('List') || name === 'SweepBlobs'
/** Here the id is the caller's own. */
const makers = new Set(['CreateAgent', 'StartBackgroundComposerFromSnapshot'])

const targets = services
  .flatMap(({ methods }) => methods)
  .filter(({ name }) => !makers.has(name))
  .flatMap((method) =>
    method.input.fields
      .filter(({ name }) => name in idFields)
      .map(({ name }) => [method.name, name, method] as const),
  )

describe('API-04 ids that do not exist', () => {
  test('are asked of every method that takes one', () => {
    expect(targets.length).toBeGreaterThanOrEqual(20)
  })

  test.each(targets)('%s.%s', async (_method, field, method) => {
    const { unknown, malformed } = idFields[field]!
    const missing = await call(method, { ...rest[method.name], [field]: unknown })
    expect(missing).toMatchObject({ code: 'not_found' })
    expect(missing.message).toContain(unknown)
    for (const id of malformed) {
      expect(await call(method, { ...rest[method.name], [field]: id }), id).toMatchObject({
        code: 'invalid_argument',
      })
    }
  })

  test('an empty request of each method that needs something is refused with its field', async () => {
    const all = services.flatMap(({ methods }) => methods).filter(({ input }) => input.fields.length > 0)
    for (const method of all.filter((method) => !needsNothing(method))) {
      const failure = await call(method, {})
      expect([method.name, failure.code]).toEqual([method.name, 'invalid_argument'])
      expect(failure.message).toMatch(/^[a-z_]+: |required/)
    }
  })

  test('other names: repository, snapshot, pull request', async () => {
    const start = BackgroundComposerService.method.startBackgroundComposerFromSnapshot
    const unknown = { repository_info: { registered: 'nowhere' } }
    expect(await call(start, { prompt: 'x', ...unknown })).toMatchObject({ code: 'not_found' })
    expect(await call(start, { prompt: 'x', snapshot_name_or_id: 'mine' })).toMatchObject({
      code: 'not_found',
    })
    expect(await call(start, { prompt: 'x', snapshot_name_or_id: '../x' })).toMatchObject({
      code: 'invalid_argument',
    })
    expect(await call(PullRequestService.method.getPullRequest, { key: { number: 4711 } })).toMatchObject({
      code: 'not_found',
    })
    expect(await call(PullRequestService.method.diffPullRequest, { key: { url: 'x' } })).toMatchObject({
      code: 'not_found',
    })
  })

  test('a raw path and a file: address are no repositories', async () => {
    for (const location of [
      { registered: api.files.path },
      { url: api.files.path },
      { url: `file://${api.files.path}` },
      { url: '../x' },
    ]) {
      const failure = await call(AgentService.method.createAgent, { prompt: 'x', repository: location })
      expect(failure, JSON.stringify(location)).toMatchObject({ code: 'invalid_argument' })
      expect(failure.message).toMatch(/^repository\.(registered|url)/)
    }
  })
})

describe('API-05 paging while the list grows', () => {
  test.each([
    ['ListAgents', AgentService.method.listAgents, 'agents'],
    ['ListBackgroundComposers', BackgroundComposerService.method.listBackgroundComposers, 'composers'],
  ] as const)('%s', async (_name, method, key) => {
    const originals = await Promise.all(Array.from({ length: 120 }, () => newAgent()))
    const known = new Set(originals)
    const seen: string[] = []
    let page_token = ''
    do {
      const page = (await call(method, { page_size: 25, page_token })) as unknown as Record<string, unknown>
      const ids = ((page[key] ?? []) as { bcId: string }[]).map(({ bcId }) => bcId)
      expect(ids.length).toBeLessThanOrEqual(25)
      seen.push(...ids)
      page_token = (page.nextPageToken as string | undefined) ?? ''
      await Promise.all([newAgent(), newAgent(), newAgent()])
      const archived = ids.find((id) => known.has(id)) as `bc-${string}` | undefined
      if (archived)
        await api.temporal.enter(archived, {
          status: 'ARCHIVED',
          paused: false,
          queue: [],
          reason: 'archived',
        })
    } while (page_token !== '')
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.filter((id) => known.has(id)).toSorted()).toEqual(originals.toSorted())
    expect(seen).toEqual(seen.toSorted().toReversed())
  })

  test('page sizes: 0 is the default, too many are refused, foreign tokens too', async () => {
    const { listAgents } = AgentService.method
    const page = (await call(listAgents, { page_size: 0 })) as unknown as { agents: unknown[] }
    expect(page.agents).toHaveLength(50)
    expect(await call(listAgents, { page_size: 100_000 })).toMatchObject({ code: 'invalid_argument' })
    expect(await call(listAgents, { page_size: -1 })).toMatchObject({ code: 'invalid_argument' })
    expect(await call(listAgents, { page_token: 'bm90IG91cnM' })).toMatchObject({ code: 'invalid_argument' })
  })
})

async function newAgent(): Promise<string> {
  const { catalog, eventLog } = api.store
  const id = agentId(Date.now(), crypto.getRandomValues(new Uint8Array(10)))
  await eventLog.create(id, 'local', never)
  await catalog.agents.insert(
    {
      bcId: id,
      owner: 'local',
      title: 'x',
      repository: 'demo',
      agentSpec: 'embedded',
      configBlobId: await config(),
      createdAt: Date.now(),
      state: { status: 'IDLE', paused: false, queue: [] },
    },
    never,
  )
  await catalog.agents.markStarted(id, never)
  return id
}

let configBlobId: Promise<`sha256_${string}`> | undefined
function config(): Promise<`sha256_${string}`> {
  configBlobId ??= api
    .client(AgentService)
    .createAgent({ prompt: 'x', repository: { location: { case: 'registered', value: 'demo' } } })
    .then(
      async ({ agent }) =>
        (await api.store.catalog.agents.get('local', agent!.bcId as `bc-${string}`, never)).configBlobId,
    )
  return configBlobId
}

/** The answer, or the error, of a call in JSON; of a stream the error, which must come at once. */
async function call(method: DescMethod, request: JsonObject): Promise<{ code?: string; message?: string }> {
  const path = `${method.parent.typeName}/${method.name}`
  const body = Buffer.from(JSON.stringify(request))
  if (method.methodKind === 'unary') return (await (await api.post(path, body)).json()) as { code?: string }
  const header = Buffer.alloc(5)
  header.writeUInt32BE(body.length, 1)
  const response = await api.post(path, Buffer.concat([header, body]), {
    'content-type': 'application/connect+json',
  })
  const answer = Buffer.from(await response.arrayBuffer())
  return (JSON.parse(answer.subarray(5).toString()) as { error: { code: string } }).error
}
