import { existsSync, readdirSync } from 'node:fs'
import { Socket } from 'node:net'

import type { DescMethod, JsonObject } from '@bufbuild/protobuf'
import { AgentService, BackgroundComposerService } from '@tutti/proto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

import { withValue } from './request-fields.ts'

let api: DemoApi
const { createAgent, deliverAgent } = AgentService.method
const { startParallelAgentWorkflow, startBackgroundComposerFromSnapshot } = BackgroundComposerService.method

beforeAll(async () => {
  api = await startDemoApi()
  api.temporal.nothingToDeliver = true
})
afterAll(() => api.close())

describe('SEC-11 options hidden in names, in the fields of create and deliver', () => {
  const names = [
    '--upload-pack=x',
    '-o x',
    '--output=/tmp/tutti-sec-11',
    '$(touch /tmp/tutti-sec-11)',
    '`touch /tmp/tutti-sec-11`',
    ';touch /tmp/tutti-sec-11',
    'a\nb',
    'a\u202eb',
    'a\u2066b',
    'refs/../x',
    '@{-1}',
    'x'.repeat(300),
    'a\0b',
    '\u001b]0;x\u0007',
  ]
  const body = { prompt: 'x', repository: { registered: 'demo' } }
  const refs: readonly (readonly [string, DescMethod, JsonObject, readonly string[]])[] = [
    ['ref of CreateAgent', createAgent, body, ['repository', 'ref']],
    [
      'ref of an ensemble',
      startParallelAgentWorkflow,
      { spec: { ...body, count: 1 } },
      ['spec', 'repository', 'ref'],
    ],
    [
      'branch of an ensemble',
      startParallelAgentWorkflow,
      { spec: { ...body, count: 1 } },
      ['spec', 'branch'],
    ],
    [
      'base of an ensemble',
      startParallelAgentWorkflow,
      { spec: { ...body, count: 1 } },
      ['spec', 'base_branch'],
    ],
    [
      "ref of the seed's start",
      startBackgroundComposerFromSnapshot,
      { prompt: 'x', repository_info: { registered: 'demo' } },
      ['repository_info', 'ref'],
    ],
    ['name of a repository', createAgent, body, ['repository', 'registered']],
    ['URL of a repository', createAgent, { prompt: 'x', repository: {} }, ['repository', 'url']],
    ['branch of a delivery', deliverAgent, { bc_id: 'bc-01890a5d-ac96-774b-bcce-b302099a8057' }, ['branch']],
    ['base of a delivery', deliverAgent, { bc_id: 'bc-01890a5d-ac96-774b-bcce-b302099a8057' }, ['base']],
  ]

  test.each(refs)('%s: refused with its path', async (_what, method, base, path) => {
    for (const name of names) {
      const response = await post(method, withValue(base, path, name))
      const text = await response.text()
      expect(response.status, `${JSON.stringify(name)}: ${text}`).toBe(400)
      expect((JSON.parse(text) as { message: string }).message).toContain(path.join('.'))
    }
    expect(existsSync('/tmp/tutti-sec-11')).toBe(false)
  })

  test('a title is one line without control and direction marks, and otherwise plain text', async () => {
    for (const title of names) {
      const response = await post(createAgent, { ...body, options: { title } })
      const answer = (await response.json()) as { agent?: { title: string } }
      // oxlint-disable-next-line eslint/no-control-regex -- what must not be there
      const refused = title.length > 256 || /[\u0000-\u001f\u202e\u2066]/.test(title)
      expect(response.status, JSON.stringify(title)).toBe(refused ? 400 : 200)
      if (!refused) expect(answer.agent?.title).toBe(title)
    }
  })

  test('a title that is made from a prompt shows control and direction marks as escapes', async () => {
    const response = await post(createAgent, { ...body, prompt: '\u202eevil\u001b[31m\u009b31m\nsecond' })
    expect(await response.json()).toMatchObject({ agent: { title: '\\u{202e}evil\\u{1b}[31m\\u{9b}31m' } })
  })

  test('nothing was started that names asked for', () => {
    expect(existsSync('/tmp/tutti-sec-11')).toBe(false)
    expect(readdirSync(process.cwd())).not.toContain('x')
  })
})

describe("SEC-08 escapes in the server's log", () => {
  test('one request is one line, whatever is in its path', async () => {
    const before = api.logLines.length
    const { port } = new URL(api.url)
    const answer = await new Promise<string>((resolve) => {
      const socket = new Socket().connect(Number(port), '127.0.0.1')
      const evil = 'GET /a\u009b31m\u202e{"msg":"forged"} HTTP/1.1\r\nHost: 127.0.0.1:'
      socket.end(
        Buffer.from(
          `${evil}${port}\r\nAuthorization: Bearer ${api.key}\r\nConnection: close\r\n\r\n`,
          'latin1',
        ),
      )
      let text = ''
      socket.on('data', (chunk) => (text += chunk.toString('latin1')))
      socket.on('close', () => resolve(text))
    })
    expect(answer).toMatch(/^HTTP\/1.1 40[04]/)
    // oxlint-disable-next-line eslint/no-control-regex -- what must not be there
    for (const line of api.logLines.slice(before))
      expect(line.trimEnd()).toMatch(/^\{[^\u0000-\u001f\u007f-\u009f\u202a-\u202e]*\}$/)
  })
})

function post(method: DescMethod, request: JsonObject): Promise<Response> {
  return api.post(`${method.parent.typeName}/${method.name}`, JSON.stringify(request))
}
