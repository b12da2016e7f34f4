import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span as it came over OTLP. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly status?: { readonly code?: number; readonly message?: string }
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
}

export interface CollectorDouble {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** Every request body so far, as it came. */
  readonly bodies: readonly string[]
  close(): Promise<void>
}

interface OtlpValue {
  readonly stringValue?: string
  readonly intValue?: string | number
  readonly boolValue?: boolean
}

interface Body {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & {
        readonly attributes: readonly { readonly key: string; readonly value: OtlpValue }[]
      })[]
    }[]
  }[]
}

/** Not a collector, a double of one: takes OTLP over HTTP in JSON, keeps it, and says what it is in every answer. */
export async function startCollectorDouble(): Promise<CollectorDouble> {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      response.setHeader('server', 'collector-double')
      if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/json') {
        response.writeHead(404).end()
        return
      }
      bodies.push(body)
      for (const { scopeSpans } of (JSON.parse(body) as Body).resourceSpans)
        for (const scope of scopeSpans)
          for (const span of scope.spans)
            spans.push({ ...span, attributes: Object.fromEntries(span.attributes.map(plain)) })
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

const plain = ({ key, value }: { readonly key: string; readonly value: OtlpValue }): [string, unknown] => [
  key,
  value.stringValue ?? value.boolValue ?? Number(value.intValue),
]
