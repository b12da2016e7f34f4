import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { TuttiError, type Clock } from '@tutti/core'
import { AgentService, BackgroundComposerService, ErrorDetailsSchema } from '@tutti/proto'
import { afterEach, expect, test } from 'vitest'
import { followAgentEvents, followEnsemble, type LoggedEvent } from './follow.ts'
import { createTuttiClient, type TuttiClient } from './tutti-client.ts'
import { tuttiErrorOf } from './tutti-error-of.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface TestServer {
  readonly client: TuttiClient
  /** Cuts all connections, as a killed server does. */
  cut(): void
  stop(): Promise<void>
  start(): Promise<void>
}

async function serve(routes: (router: ConnectRouter) => void): Promise<TestServer> {
  const sockets = new Set<Socket>()
  let server: Server
  let port = 0
  const start = async () => {
    server = createServer(connectNodeAdapter({ routes }))
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  }
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  const stop = async () => {
    cut()
    await new Promise((resolve) => server.close(resolve))
  }
  await start()
  closers.push(stop)
  return { client: createTuttiClient({ address: `127.0.0.1:${port}` }), cut, stop, start }
}

const offset = (number: number) => String(number).padStart(8, '0')
const numberOf = (text: string | undefined) => (text === undefined || text === '' ? 0 : Number(text))

/** Waits are only counted, so that a test does not last as long as they do. */
function countedWaits(): { clock: Clock; waits: number[] } {
  const waits: number[] = []
  return {
    waits,
    clock: {
      now: () => Date.now(),
      monotonic: () => performance.now(),
      sleep: async (ms, signal) => {
        signal.throwIfAborted()
        waits.push(ms)
      },
    },
  }
}

const { signal } = new AbortController()

test('STR: every event once and in order, over a connection that breaks again and again', async () => {
  const total = 200
  let opened = 0
  const server = await serve((router) => {
    router.service(AgentService, {
      async *streamAgentEvents({ offsetKey }) {
        opened += 1
        for (let next = numberOf(offsetKey) + 1; next <= total; next += 1) {
          if (next % 17 === 0) yield { offsetKey: offset(next - 1), eventJson: '' }
          yield { offsetKey: offset(next), eventJson: JSON.stringify({ next }) }
          if (next % 40 === 0) {
            await new Promise((resolve) => setImmediate(resolve))
            server.cut()
            return
          }
        }
      },
    })
  })
  const { clock } = countedWaits()
  const got: LoggedEvent[] = []
  for await (const event of followAgentEvents(
    server.client,
    { bcId: 'bc-1', follow: true, signal },
    { clock },
  )) {
    got.push(event)
  }
  expect(got.map(({ offsetKey }) => numberOf(offsetKey))).toEqual(
    Array.from({ length: total }, (_, index) => index + 1),
  )
  expect(opened).toBeGreaterThan(4)
})

test('a server that repeats what was read is not believed', async () => {
  let opened = 0
  const server = await serve((router) => {
    router.service(AgentService, {
      async *streamAgentEvents() {
        opened += 1
        for (const next of [1, 2, 3]) yield { offsetKey: offset(next), eventJson: '{}' }
        if (opened === 1) throw new ConnectError('going down', Code.Unavailable)
        yield { offsetKey: offset(4), eventJson: '{}' }
      },
    })
  })
  const { clock } = countedWaits()
  const got: string[] = []
  for await (const event of followAgentEvents(server.client, { bcId: 'bc-1', signal }, { clock }))
    got.push(event.offsetKey)
  expect(got).toEqual([1, 2, 3, 4].map(offset))
})

test('waits grow with full jitter between 0.25 and 15 s while the server is away, and it goes on when it is back', async () => {
  const server = await serve((router) => {
    router.service(BackgroundComposerService, {
      async *streamParallelAgentWorkflowStatus({ offsetKey }) {
        yield { offsetKey: offset(numberOf(offsetKey) + 1), phase: 5 }
      },
    })
  })
  await server.stop()
  const { clock, waits } = countedWaits()
  const policy = {
    clock,
    random: () => 1,
    onBroken: (error: TuttiError) => {
      expect(error.code).toBe('unavailable')
      if (waits.length === 8) return server.start()
      return undefined
    },
  }
  const updates = []
  const stop = new AbortController()
  for await (const update of followEnsemble(
    server.client,
    { ensembleId: 'en-1', signal: stop.signal },
    policy,
  )) {
    updates.push(update.offsetKey)
  }
  expect(updates).toEqual([offset(1)])
  expect(waits.slice(0, 8)).toEqual([250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000])
})

test('a stream that has gone silent is opened again', async () => {
  let opened = 0
  const server = await serve((router) => {
    router.service(AgentService, {
      async *streamAgentEvents({ offsetKey }, { signal: ended }) {
        opened += 1
        yield { offsetKey: offset(numberOf(offsetKey) + 1), eventJson: '{}' }
        if (opened === 1) await new Promise((resolve) => ended.addEventListener('abort', resolve))
      },
    })
  })
  const { clock } = countedWaits()
  const got: string[] = []
  const policy = { clock, silenceMs: 100 }
  for await (const event of followAgentEvents(server.client, { bcId: 'bc-1', signal }, policy))
    got.push(event.offsetKey)
  expect(got).toEqual([offset(1), offset(2)])
})

test('API-04 an answer that is final ends it at once', async () => {
  let opened = 0
  const server = await serve((router) => {
    router.service(AgentService, {
      // oxlint-disable-next-line require-yield -- it refuses
      async *streamAgentEvents() {
        opened += 1
        throw new ConnectError('There is no agent bc-1.', Code.NotFound)
      },
    })
  })
  const following = followAgentEvents(server.client, { bcId: 'bc-1', signal }).next()
  await expect(following).rejects.toMatchObject({
    name: 'TuttiError',
    code: 'not_found',
    message: 'There is no agent bc-1.',
  })
  expect(opened).toBe(1)
})

test('a signal ends it as cancelled, also during a wait', async () => {
  const server = await serve(() => {})
  await server.stop()
  const stop = new AbortController()
  const following = followAgentEvents(
    server.client,
    { bcId: 'bc-1', signal: stop.signal },
    { random: () => 1, onBroken: () => stop.abort() },
  ).next()
  await expect(following).rejects.toMatchObject({ code: 'cancelled' })
})

test('giving up after a time gives the reason', async () => {
  const server = await serve(() => {})
  await server.stop()
  let now = 0
  const clock: Clock = { ...countedWaits().clock, monotonic: () => (now += 1000) }
  const following = followAgentEvents(
    server.client,
    { bcId: 'bc-1', signal },
    { clock, giveUpMs: 5000 },
  ).next()
  await expect(following).rejects.toMatchObject({ code: 'unavailable' })
})

test('the server’s code, message and details come through; the transport’s own words do not', () => {
  const sent = new ConnectError('count must be at most 50.', Code.InvalidArgument, undefined, [
    {
      desc: ErrorDetailsSchema,
      value: { details: { additionalInfo: { code: 'out_of_range', field: 'count' } } },
    },
  ])
  // As after the wire: details arrive as bytes.
  const [detail] = sent.findDetails(ErrorDetailsSchema)
  expect(detail?.details?.additionalInfo['field']).toBe('count')
  expect(tuttiErrorOf(sent)).toMatchObject({
    code: 'out_of_range',
    message: 'count must be at most 50.',
    detail: { field: 'count' },
  })
  expect(tuttiErrorOf(new ConnectError('no', Code.PermissionDenied)).code).toBe('permission_denied')
  expect(tuttiErrorOf(new ConnectError('x', Code.Canceled)).code).toBe('cancelled')
  expect(tuttiErrorOf(new ConnectError('read ECONNRESET', Code.Aborted)).message).not.toContain('ECONNRESET')
  const own = new TuttiError('not_found', 'gone')
  expect(tuttiErrorOf(own)).toBe(own)
})
