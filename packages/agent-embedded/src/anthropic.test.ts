import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { contractConfig } from '@tutti/agent/contract'
import { systemClock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import { createLocalAgentHost } from '@tutti/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { createEmbeddedAdapter } from './embedded-adapter.ts'

// The SDK would warn of a model that it does not know.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

const never = new AbortController().signal

// A fake: it speaks Anthropic's Messages protocol over real HTTP and gives two prepared answers; no model thinks here.
test('the embedded agent with a server of the Messages protocol thinks, calls a tool and reads its result', async () => {
  const requests: {
    url: string | undefined
    key: unknown
    body: { messages: { role: string; content: unknown }[] }
  }[] = []
  const answers = [
    [
      block(
        0,
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking: 'Look first.' },
        { type: 'signature_delta', signature: 'sig' },
      ),
      block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Looking.' }),
      block(
        2,
        { type: 'tool_use', id: 'toolu_1', name: 'shell', input: {} },
        { type: 'input_json_delta', partial_json: '{"command":' },
        { type: 'input_json_delta', partial_json: '"echo hi"}' },
      ),
      end('tool_use'),
    ],
    [block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'It said hi.' }), end('end_turn')],
  ]
  const server = createServer((request, response) => {
    void (async () => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      const answer = answers[requests.length] ?? []
      requests.push({ url: request.url, key: request.headers['x-api-key'], body: JSON.parse(body) })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const usage = { input_tokens: 1, output_tokens: 1 }
      const message = {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'claude-fake',
        content: [],
        usage,
      }
      for (const event of [{ type: 'message_start', message }, ...answer.flat()]) {
        response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      }
      response.end()
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = await createLocalAgentHost()
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await host.dispose()
  })

  const { port } = server.address() as AddressInfo
  const env = { ANTHROPIC_API_KEY: 'sk-fake', ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` }
  const session = await createEmbeddedAdapter({ clock: systemClock, env }).open(
    { bcId: 'bc-1', config: contractConfig('embedded:anthropic/claude-fake'), host },
    never,
  )
  const events: TaskEvent[] = []
  const turn = session.runTurn({ turnId: 'turn-1', prompt: 'Say hi.', continued: false }, never)
  let step = await turn.next()
  for (; !step.done; step = await turn.next()) events.push(step.value)

  expect(step.value).toEqual({ outcome: 'completed', summary: 'It said hi.' })
  expect(events).toContainEqual({ type: 'thinking_delta', text: 'Look first.' })
  expect(events).toContainEqual(
    expect.objectContaining({ type: 'tool_call_completed', callId: 'toolu_1', outcome: 'ok' }),
  )
  expect(requests.map(({ url, key }) => [url, key])).toEqual([
    ['/v1/messages', 'sk-fake'],
    ['/v1/messages', 'sk-fake'],
  ])
  // The thought goes back with its signature, as the protocol demands.
  expect(requests[1]?.body.messages.slice(1)).toMatchObject([
    {
      role: 'assistant',
      content: [{ type: 'thinking', signature: 'sig' }, { type: 'text' }, { type: 'tool_use' }],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1' }] },
  ])
})

function block(index: number, content: object, ...deltas: object[]) {
  return [
    { type: 'content_block_start', index, content_block: content },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

function end(reason: string) {
  return [
    { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ]
}
