import { context, createContextKey, trace } from '@opentelemetry/api'
import { TuttiError, forcedIdsKey, type SpanIds } from '@tutti/core'
import { version } from '../version.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface Telemetry {
  /** Sends what has not been sent, for a few seconds at most. */
  stop(): Promise<void>
}

/** A collector that does not answer must not hold up the end of a process. */
const flushMs = 3000

/**
 * Traces by OTLP over HTTP, where the environment names a collector (decision 0070): `OTEL_EXPORTER_OTLP_ENDPOINT` or
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, or `OTEL_TRACES_EXPORTER=otlp` for the one on this machine. Undefined, and nothing of the SDK
 * loaded, without. Headers, certificates and time limits are the exporter's own `OTEL_EXPORTER_OTLP_*` variables.
 *
 * @throws TuttiError `invalid_argument` for another exporter than `otlp` or `none`.
 */
export async function startTelemetry(env: Env): Promise<Telemetry | undefined> {
  if (!isWanted(env)) return undefined
  const [{ AsyncLocalStorageContextManager }, { OTLPTraceExporter }, resources, sdk] = await Promise.all([
    import('@opentelemetry/context-async-hooks'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/sdk-trace'),
  ])
  const random = new sdk.RandomIdGenerator()
  const forced = createContextKey(forcedIdsKey)
  const wanted = () => context.active().getValue(forced) as SpanIds | undefined
  const provider = new sdk.TracerProvider({
    resource: resources
      .resourceFromAttributes({ 'service.name': 'tutti', 'service.version': version })
      .merge(
        resources.detectResources({ detectors: [resources.envDetector, resources.serviceNameEnvDetector] }),
      ),
    idGenerator: {
      generateTraceId: () => wanted()?.traceId ?? random.generateTraceId(),
      generateSpanId: () => wanted()?.spanId ?? random.generateSpanId(),
    },
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(provider)
  return {
    async stop() {
      const limit = Promise.withResolvers<void>()
      const timer = setTimeout(limit.resolve, flushMs)
      await Promise.race([provider.shutdown().catch(() => undefined), limit.promise])
      clearTimeout(timer)
      trace.disable()
      context.disable()
    },
  }
}

function isWanted(env: Env): boolean {
  const exporter = env['OTEL_TRACES_EXPORTER'] ?? ''
  if (env['OTEL_SDK_DISABLED'] === 'true' || exporter === 'none') return false
  if (exporter !== '' && exporter !== 'otlp') {
    throw new TuttiError(
      'invalid_argument',
      `OTEL_TRACES_EXPORTER is ${JSON.stringify(exporter)}. Tutti knows otlp and none.`,
      { field: 'OTEL_TRACES_EXPORTER' },
    )
  }
  return (
    exporter === 'otlp' ||
    (env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '') !== '' ||
    (env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] ?? '') !== ''
  )
}
