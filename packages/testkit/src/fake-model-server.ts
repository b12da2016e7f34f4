import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One `delta` of an OpenAI chat completion chunk, as it stands on the wire. */
export type FakeDelta = Readonly<Record<string, unknown>>

export type FakeModelAnswer =
  | {
      readonly deltas: readonly FakeDelta[]
      /** Default: `tool_calls` when a delta has some, else `stop`. */
      readonly finishReason?: string
      readonly completionTokens?: number
      /** The stream stops before this delta until the client goes away. */
      readonly hangAt?: number
    }
  | { readonly status: number; readonly message: string; readonly headers?: Readonly<Record<string, string>> }

export interface FakeModelRequest {
  readonly path: string
  readonly authorization: string | undefined
  readonly body: {
    readonly model: string
    readonly stream: boolean
    readonly messages: readonly Readonly<Record<string, unknown>>[]
    readonly tools?: readonly { readonly function: { readonly name: string } }[]
  }
}

/** A fake: an HTTP server on loopback that speaks OpenAI's streaming protocol and gives prepared answers. No model. */
export interface FakeModelServer {
  /** With `/v1`, as clients want it. */
  readonly baseUrl: string
  readonly requests: readonly FakeModelRequest[]
  /** Resolves when a client has left a stream that hangs. */
  readonly clientLeft: Promise<void>
  close(): Promise<void>
}

/** Answers the requests in order; one more than there are answers gets HTTP 500 that says so. */
export async function createFakeModelServer(answers: readonly FakeModelAnswer[]): Promise<FakeModelServer> {
  const requests: FakeModelRequest[] = []
  const left = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    void (async () => {
      const body = JSON.parse(await readAll(request)) as FakeModelRequest['body']
      const answer = answers[requests.length] ?? { status: 500, message: 'This fake has no more answers.' }
      requests.push({ path: request.url ?? '', authorization: request.headers.authorization, body })
      if ('status' in answer) {
        response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
        response.end(JSON.stringify({ error: { message: answer.message, type: 'fake' } }))
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const send = (chunk: object) =>
        response.write(
          `data: ${JSON.stringify({ id: `fake-${requests.length}`, object: 'chat.completion.chunk', created: 0, model: 'fake', ...chunk })}\n\n`,
        )
      for (const [index, delta] of answer.deltas.entries()) {
        if (index === answer.hangAt) {
          response.once('close', () => left.resolve())
          return
        }
        send({ choices: [{ index: 0, delta, finish_reason: null }] })
      }
      const calls = answer.deltas.some((delta) => 'tool_calls' in delta)
      const reason = answer.finishReason ?? (calls ? 'tool_calls' : 'stop')
      send({ choices: [{ index: 0, delta: {}, finish_reason: reason }] })
      const tokens = answer.completionTokens ?? 0
      send({ choices: [], usage: { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 } })
      response.end('data: [DONE]\n\n')
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    clientLeft: left.promise,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
