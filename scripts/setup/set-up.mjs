import { checkTools } from './check-tools.mjs'
import { ensureSandbox } from './ensure-sandbox.mjs'
import { ensureTemporal, ensureTemporalTestServer } from './ensure-temporal.mjs'
import { installDependencies } from './install-dependencies.mjs'

/**
 * Brings a fresh clone to where Tutti runs. What is done already costs a fraction of a second. Installs into the
 * checkout and the user's cache folder, and Debian packages when it is root there.
 *
 * @param {{signal: AbortSignal, forTests?: boolean}} options `forTests` fetches what only tests need too, and leaves a
 *   cluster named by TEMPORAL_ADDRESS alone, because tests start their own
 */
export async function setUp({ signal, forTests = false }) {
  checkTools()
  await installDependencies({ signal })
  const sandbox = await ensureSandbox({ signal })
  if (!forTests) return { sandbox, temporal: await ensureTemporal({ signal }) }
  const env = { ...process.env, TEMPORAL_ADDRESS: undefined }
  const temporal = await ensureTemporal({ signal, env })
  await ensureTemporalTestServer({ signal, env })
  return { sandbox, temporal }
}
