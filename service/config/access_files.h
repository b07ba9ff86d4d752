// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "service/config/options.h"

namespace millrace {

class ResumeKeys;
class TenantList;
class TlsContext;
class TokenList;

// The content of the files of [access] and [tls]; null without the key of a file.
struct AccessFiles {
  std::shared_ptr<const TokenList> tokens = nullptr;
  std::shared_ptr<const TenantList> tenants = nullptr;
  std::shared_ptr<const ResumeKeys> resume_keys = nullptr;
  std::shared_ptr<const TlsContext> tls = nullptr, admin_tls = nullptr;
};
// Reads the files that the configuration names. The error names the key.
Result<AccessFiles, ConfigError> load_access(const Configuration& from);

}  // namespace millrace
