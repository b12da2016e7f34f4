import type { DescMethod, JsonObject } from '@bufbuild/protobuf'
import { limits } from '@tutti/core'
import { AgentService, BackgroundComposerService } from '@tutti/proto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

let api: DemoApi
const { createAgent } = AgentService.method
const { startParallelAgentWorkflow, addAsyncFollowupBackgroundComposer } = BackgroundComposerService.method

beforeAll(async () => {
  api = await startDemoApi()
})
afterAll(() => api.close())

const repository = { registered: 'demo' }
const tooLong = 'x'.repeat(limits.maxOperandBytes + 1)

async function refusal(method: DescMethod, body: JsonObject) {
  const response = await api.post(`${method.parent.typeName}/${method.name}`, JSON.stringify(body))
  const failure = (await response.json()) as {
    code?: string
    message?: string
    details?: [{ debug: { details: { additionalInfo: { field: string } } } }]
  }
  const field = failure.details?.[0].debug.details.additionalInfo.field
  return { code: failure.code, field, message: failure.message }
}

async function countAgents(): Promise<number> {
  const never = new AbortController().signal
  return (await api.store.catalog.agents.list('local', {}, { pageSize: 1000, pageToken: '' }, never)).items
    .length
}

describe('what can be known before the start is refused before the start, with its field', () => {
  const mounts: readonly (readonly [string, RegExp])[] = [
    ['relative', /absolute path/],
    ['/', /whole disk/],
    ['/proc', /processes/],
    ['/etc/shadow', /credentials/],
    ['/opt/../proc', /\.\. part/],
  ]
  test.each(mounts)('the mount %s', async (path, words) => {
    const agent = await refusal(createAgent, {
      prompt: 'x',
      repository,
      options: { sandbox: { mounts: [path] } },
    })
    expect(agent).toEqual({
      code: 'invalid_argument',
      field: 'options.sandbox.mounts[0]',
      message: expect.stringMatching(words),
    })
    const ensemble = await refusal(startParallelAgentWorkflow, {
      spec: { prompt: 'x', repository, sandbox: { mounts: ['/opt/tools', path] } },
    })
    expect(ensemble).toMatchObject({ code: 'invalid_argument', field: 'spec.sandbox.mounts[1]' })
  })

  test('a mount of the data folder, which has the local key', async () => {
    for (const path of [api.dataDir, `${api.dataDir}/blobs`]) {
      const agent = await refusal(createAgent, {
        prompt: 'x',
        repository,
        options: { sandbox: { mounts: [path] } },
      })
      expect(agent).toMatchObject({
        code: 'invalid_argument',
        message: expect.stringContaining("Tutti's data"),
      })
    }
  })

  const agents: readonly (readonly [JsonObject, string, RegExp])[] = [
    [{ spec: 'embedded:foo' }, 'spec', /embedded:foo.*no brain/],
    [{ spec: 'command:foo "unbalanced' }, 'spec', /foo \\"unbalanced/],
    [{ spec: 'embedded', model: 'gpt' }, 'model', /embedded:gpt.*no brain/],
  ]
  test.each(agents)('the agent %j', async (agent, part, words) => {
    expect(await refusal(createAgent, { prompt: 'x', repository, options: { agent } })).toEqual({
      code: 'invalid_argument',
      field: `options.agent.${part}`,
      message: expect.stringMatching(words),
    })
    const spec = { prompt: 'x', repository, agents: [{ spec: 'embedded:scripted' }, agent] }
    expect(await refusal(startParallelAgentWorkflow, { spec })).toMatchObject({
      code: 'invalid_argument',
      field: `spec.agents[1].${part}`,
    })
  })

  test('a prompt that is too long for the command line of its agent, also as a follow-up', async () => {
    const spec = 'command:a {prompt}'
    const expected = (field: string) => ({
      code: 'invalid_argument',
      field,
      message: expect.stringContaining('{prompt_file}'),
    })
    const body = { prompt: tooLong, repository, options: { agent: { spec } } }
    expect(await refusal(createAgent, body)).toEqual(expected('prompt'))
    const ensemble = { spec: { prompt: tooLong, repository, agents: [{ spec }] } }
    expect(await refusal(startParallelAgentWorkflow, ensemble)).toEqual(expected('spec.prompt'))
    const { agent } = await api.client(AgentService).createAgent({
      prompt: 'x',
      repository: { location: { case: 'registered', value: 'demo' } },
      options: { agent: { spec } },
    })
    const followup = { bc_id: agent!.bcId, followup: tooLong }
    expect(await refusal(addAsyncFollowupBackgroundComposer, followup)).toEqual(expected('followup'))
  })

  test.each([
    ['https://127.0.0.1/x.git', /private or reserved/],
    ['https://localhost/x', /this machine/],
    ['http://localhost:3000/x', /https or ssh/],
    ['ssh://git@10.0.0.1/x', /private or reserved/],
  ])('the repository %s', async (url, words) => {
    expect(await refusal(createAgent, { prompt: 'x', repository: { url } })).toEqual({
      code: 'invalid_argument',
      field: 'repository.url',
      message: expect.stringMatching(words),
    })
  })

  test('a branch or tag that the registered repository does not have; what is refused claims no key', async () => {
    const body = { prompt: 'x', idempotency_key: 'refused-first', repository: { ...repository, ref: 'nope' } }
    expect(await refusal(createAgent, body)).toEqual({
      code: 'not_found',
      field: 'repository.ref',
      message: expect.stringContaining('no commit at "nope"'),
    })
    const right = { ...body, repository: { ...repository, ref: 'main' } }
    expect(
      await refusal(createAgent, { ...right, options: { agent: { spec: 'embedded:foo' } } }),
    ).toMatchObject({
      code: 'invalid_argument',
    })
    const before = await countAgents()
    expect(await refusal(createAgent, right)).toMatchObject({ code: undefined })
    expect(await countAgents()).toBe(before + 1)
  })
})
