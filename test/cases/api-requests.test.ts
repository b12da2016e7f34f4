import { toBinary, create, type DescMethod, type JsonObject } from '@bufbuild/protobuf'
import {
  AgentService,
  BackgroundComposerService,
  CreateAgentRequestSchema,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
} from '@tutti/proto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

import { impossibleValues, requestFields, strangeValues, withValue } from './request-fields.ts'

let api: DemoApi
let bcId: string
const never = new AbortController().signal
const services = [
  AgentService,
  BackgroundComposerService,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
]
const methods: readonly DescMethod[] = services.flatMap(({ methods: list }) => list)
const pathOf = (method: DescMethod) => `${method.parent.typeName}/${method.name}`
const createAgentPath = pathOf(AgentService.method.createAgent)

beforeAll(async () => {
  api = await startDemoApi()
  api.temporal.nothingToDeliver = true
  api.temporal.noSandboxes = true
  bcId = (await api.client(AgentService).createAgent(agentInit)).agent!.bcId
})
afterAll(() => api.close())

const agentInit = {
  prompt: 'Do it',
  repository: { location: { case: 'registered', value: 'demo' } },
} as const
const agentBody = { prompt: 'Do it', repository: { registered: 'demo' } }

/** A right request for each method that changes something. */
const rightRequests = (): Record<string, JsonObject> => ({
  StartParallelAgentWorkflow: { spec: { ...agentBody, count: 1 } },
  StartBackgroundComposerFromSnapshot: { prompt: 'Do it', repository_info: { registered: 'demo' } },
  AddAsyncFollowupBackgroundComposer: { bc_id: bcId, followup: 'More' },
  PauseBackgroundComposer: { bc_id: bcId },
  ResumeBackgroundComposer: { bc_id: bcId },
  ArchiveBackgroundComposer: { bc_id: bcId },
  MakePRBackgroundComposer: { bc_id: bcId },
  CreateAgent: agentBody,
  StopAgent: { bc_id: bcId },
  AnswerQuestion: { bc_id: bcId, answer: 'yes' },
  DeliverAgent: { bc_id: bcId },
  RecoverAgent: { bc_id: bcId },
  FileSync: { bc_id: bcId, files: [{ path: 'YQ==' }] },
  StopEnsemble: { ensemble_id: 'en-01890a5d-ac96-774b-bcce-b302099a8057' },
  AddRepository: { path: api.files.path },
  SweepBlobs: { dry_run: true },
})
const writes = methods.filter(({ name }) => !/^(Get|List|Stream|Diff|Read|Doctor)/.test(name))

interface Failure {
  readonly code: string
  readonly message: string
  readonly details?: readonly {
    readonly debug?: { readonly details?: { readonly additionalInfo?: { readonly field?: string } } }
  }[]
}

async function countAgents(): Promise<number> {
  const { items } = await api.store.catalog.agents.list('local', {}, { pageSize: 1000, pageToken: '' }, never)
  return items.length
}

describe('API-01 unknown fields', () => {
  test.each([
    ['at the top', { ...agentBody, modle: 'x' }, 'modle'],
    [
      'in a message',
      { ...agentBody, options: { sandbox: { limits: { memori: 1 } } } },
      'options.sandbox.limits.memori',
    ],
    [
      'in an element of a list',
      { spec: { ...agentBody, agents: [{ spec: 'embedded' }, { modle: 'x' }] } },
      'spec.agents[1].modle',
    ],
  ])('in JSON, %s: refused with the path, nothing created', async (_where, body, path) => {
    const before = await countAgents()
    const method =
      'spec' in body ? pathOf(BackgroundComposerService.method.startParallelAgentWorkflow) : createAgentPath
    const response = await api.post(method, JSON.stringify(body))
    const failure = (await response.json()) as Failure
    expect([response.status, failure.code]).toEqual([400, 'invalid_argument'])
    expect(failure.message).toContain(`${path} is not a known key`)
    expect(failure.details?.[0]?.debug?.details?.additionalInfo?.field).toBe(path)
    expect(await countAgents()).toBe(before)
  })

  test('in JSON over a stream: refused with the path', async () => {
    const body = Buffer.from(JSON.stringify({ bc_id: bcId, offset: 'x' }))
    const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body])
    const response = await api.post(pathOf(BackgroundComposerService.method.streamConversation), envelope, {
      'content-type': 'application/connect+json',
    })
    expect(await response.text()).toContain(
      '"message":"offset is not a known key of aiserver.v1.StreamConversationRequest."',
    )
  })

  test('in binary: ignored, the agent is created', async () => {
    const before = await countAgents()
    // Field 4711, a string.
    const unknown = Buffer.from([0xba, 0xa6, 0x02, 0x01, 0x78])
    const bytes = Buffer.concat([
      toBinary(CreateAgentRequestSchema, create(CreateAgentRequestSchema, agentInit)),
      unknown,
    ])
    const response = await api.post(createAgentPath, bytes, { 'content-type': 'application/proto' })
    expect(response.status).toBe(200)
    expect(await countAgents()).toBe(before + 1)
  })
})

describe('API-02 wrong types and ranges', () => {
  test('covers every method that changes something', () => {
    expect(writes.map(({ name }) => name).toSorted()).toEqual(Object.keys(rightRequests()).toSorted())
  })

  test('a right request of each method passes the checks', async () => {
    for (const method of writes) {
      const response = await api.post(pathOf(method), JSON.stringify(rightRequests()[method.name]))
      const text = await response.text()
      expect(text, method.name).not.toContain('invalid_argument')
    }
  })

  test.each(writes.map((method) => [method.name, method] as const))(
    '%s: each impossible value of each field',
    async (name, method) => {
      const base = rightRequests()[name]!
      for (const target of requestFields(method.input)) {
        for (const value of impossibleValues(target)) {
          const what = `${target.path.join('.')} = ${JSON.stringify(value)}`
          const response = await api.post(pathOf(method), JSON.stringify(withValue(base, target.path, value)))
          const text = await response.text()
          expect(response.status, `${what}: ${text}`).toBe(400)
          const failure = JSON.parse(text) as Failure
          expect(failure.code, what).toBe('invalid_argument')
          const field = failure.details?.[0]?.debug?.details?.additionalInfo?.field ?? ''
          expect(field.replaceAll(/\[(\d+)\]/g, '.$1'), `${what}: ${text}`).toContain(target.path.join('.'))
          expectTame(text, what)
        }
      }
    },
    60_000,
  )

  test.each(writes.map((method) => [method.name, method] as const))(
    '%s: strange values of each field break nothing',
    async (name, method) => {
      const base = rightRequests()[name]!
      for (const target of requestFields(method.input)) {
        for (const value of strangeValues(target)) {
          const what = `${target.path.join('.')} = ${JSON.stringify(value).slice(0, 40)}`
          const response = await api.post(pathOf(method), JSON.stringify(withValue(base, target.path, value)))
          const text = await response.text()
          expect(response.status, `${what}: ${text}`).toBeLessThan(500)
          if (response.status >= 400) expectTame(text, what)
        }
      }
    },
    120_000,
  )

  test.each([
    ['DeliverAgent', 'branch'],
    ['DeliverAgent', 'base'],
    ['StartParallelAgentWorkflow', 'spec.branch'],
    ['StartParallelAgentWorkflow', 'spec.base_branch'],
  ])('%s: a name that no branch can have is refused at once, with %s', async (name, field) => {
    const method = methods.find((candidate) => candidate.name === name)!
    const before = await countAgents()
    for (const branch of ['HEAD', 'refs/heads/foo', 'refs/tutti/x', 'a.lock', 'y'.repeat(250)]) {
      const body = withValue(rightRequests()[name]!, field.split('.'), branch)
      const response = await api.post(pathOf(method), JSON.stringify(body))
      const failure = (await response.json()) as Failure
      expect([response.status, failure.code], branch).toEqual([400, 'invalid_argument'])
      expect(failure.details?.[0]?.debug?.details?.additionalInfo?.field, branch).toBe(field)
    }
    expect(await countAgents()).toBe(before)
  })

  test('what is no message at all is refused in each format', async () => {
    for (const [type, body] of [
      ['application/json', '{'],
      ['application/json', '[1]'],
      ['application/json', Buffer.from([0x22, 0xff, 0x22])],
      ['application/proto', Buffer.from([0x0a, 0xff, 0xff, 0xff])],
      ['application/proto', Buffer.from([0x0a, 0x01, 0xff])],
    ] as const) {
      const response = await api.post(createAgentPath, body, { 'content-type': type })
      const text = await response.text()
      expect(response.status, `${type} ${text}`).toBe(400)
      expectTame(text, type)
    }
  })

  test('nothing of it failed inside the server', async () => {
    const response = await fetch(`${api.url}/healthz`)
    expect(response.status).toBe(200)
    expect(api.logLines.filter((line) => line.includes('"msg":"call failed"'))).toEqual([])
  })
})

function expectTame(text: string, what: string): void {
  expect(Buffer.byteLength(text), what).toBeLessThan(4096)
  expect(text, what).not.toMatch(/\n\s+at |node_modules|\.ts:\d/)
}
