import { checkTools } from './check-tools.mjs'
import { ensureContainerEngine } from './ensure-container-engine.mjs'
import { ensureSandbox } from './ensure-sandbox.mjs'
import { ensureTemporal, ensureTemporalTestServer } from './ensure-temporal.mjs'
import { installDependencies } from './install-dependencies.mjs'
import { say } from './say.mjs'
import { isSetUpError } from './set-up-error.mjs'

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
  await ensureSandbox({ signal })
  if (!forTests) {
    await ensureTemporal({ signal })
    return
  }
  await ensureContainerEngine({ signal })
  const env = { ...process.env, TEMPORAL_ADDRESS: undefined }
  for (const ensure of [ensureTemporal, ensureTemporalTestServer]) {
    await ensure({ signal, env }).catch((error) => {
      // Tests that need it are skipped with this reason; the others are worth running.
      if (!isSetUpError(error)) throw error
      say(error.message)
    })
  }
}
