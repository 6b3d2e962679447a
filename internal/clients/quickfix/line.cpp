#include "line.h"

#include <chrono>
#include <sstream>
#include <thread>

namespace {

// patience is how long an answer may take.
constexpr std::chrono::seconds patience(240);

// logonPatience covers the gateway's wait for the next full second, the delay
// of a refused logon and QuickFIX's pause between two connections.
constexpr std::chrono::seconds logonPatience(240);

// quietTime is how long nothing may come where nothing is expected.
constexpr std::chrono::milliseconds quietTime(150);

std::string readable(std::string text) {
  for (char& c : text) {
    if (c == '\x01') c = '|';
  }
  return text;
}

}  // namespace

std::string field(const FIX::FieldMap& from, int tag) {
  return from.isSetField(tag) ? from.getField(tag) : "";
}

namespace {

void expectField(const FIX::FieldMap& part, const std::pair<int, std::string>& want, const std::string& of) {
  const std::string got = field(part, want.first);
  if (want.second == "*" ? got.empty() : got != want.second) {
    throw Failure("tag " + std::to_string(want.first) + " is '" + got + "', want '" + want.second + "': " + of);
  }
}

}  // namespace

void expect(const FIX::Message& message, const Fields& fields) {
  const std::string text = readable(message.toString());
  for (const auto& want : fields) {
    const bool header = FIX::Message::isHeaderField(want.first);
    expectField(header ? static_cast<const FIX::FieldMap&>(message.getHeader()) : message, want, text);
  }
}

void expect(const FIX::Group& entry, const Fields& fields) {
  for (const auto& want : fields) expectField(entry, want, "an entry of group " + std::to_string(entry.field()));
}

// Tape writes QuickFIX's log into the line.
class Line::Tape : public FIX::Log {
 public:
  explicit Tape(Line& line) : line_(line) {}
  void clear() override {}
  void backup() override {}
  void onIncoming(const std::string& text) override { line_.note("< " + readable(text)); }
  void onOutgoing(const std::string& text) override { line_.note("> " + readable(text)); }
  void onEvent(const std::string& text) override { line_.note("! " + text); }

 private:
  Line& line_;
};

Line::Line(Settings settings, Fields logon)
    : settings_(std::move(settings)),
      logon_(std::move(logon)),
      id_("FIX.4.4", settings_.name, settings_.target),
      password_(settings_.password) {}

Line::~Line() { stop(); }

FIX::Log* Line::create() { return new Tape(*this); }
FIX::Log* Line::create(const FIX::SessionID&) { return new Tape(*this); }
void Line::destroy(FIX::Log* log) { delete log; }

void Line::note(const std::string& line) {
  std::lock_guard<std::mutex> lock(mutex_);
  tape_.push_back(settings_.name + " " + line);
  if (tape_.size() > tapeLines) tape_.pop_front();
}

std::string Line::tape() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::string all;
  for (const auto& line : tape_) all += line + "\n";
  return all;
}

void Line::start() {
  std::stringstream text;
  text << "[DEFAULT]\nConnectionType=initiator\nStartTime=00:00:00\nEndTime=00:00:00\n"
       << "ReconnectInterval=1\nHeartBtInt=10\nResetOnLogon=N\n"
       << "UseDataDictionary=Y\nDataDictionary=" << settings_.dictionary << "\n"
       << "ValidateFieldsOutOfOrder=Y\nValidateFieldsHaveValues=Y\nValidateUserDefinedFields=Y\n"
       << "SocketConnectHost=" << settings_.host << "\nSocketConnectPort=" << settings_.port << "\n"
       << "FileStorePath=" << settings_.folder << "/" << settings_.name << "\n"
       << "[SESSION]\nBeginString=FIX.4.4\nSenderCompID=" << settings_.name
       << "\nTargetCompID=" << settings_.target << "\n";
  config_.reset(new FIX::SessionSettings(text));
  store_.reset(new FIX::FileStoreFactory(*config_));
  initiator_.reset(new FIX::SocketInitiator(*this, *store_, *config_, *this));
  initiator_->start();
}

void Line::stop() {
  if (!initiator_) return;
  initiator_->stop(true);
  initiator_.reset();
  std::lock_guard<std::mutex> lock(mutex_);
  loggedOn_ = false;
}

void Line::connect() {
  start();
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_for(lock, logonPatience, [this] { return loggedOn_; })) {
    throw Failure(settings_.name + ": no logon");
  }
}

std::string Line::refusedWith(const std::string& password) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    password_ = password;
  }
  start();
  const FIX::Message logout = session("5");
  stop();
  std::lock_guard<std::mutex> lock(mutex_);
  password_ = settings_.password;
  return field(logout, 58);
}

void Line::cut() {
  quickfixSession()->disconnect();
  stop();
}

void Line::leave() {
  quickfixSession()->logout();
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !loggedOn_; })) {
      throw Failure(settings_.name + ": our Logout was not answered");
    }
  }
  stop();
}

FIX::Session* Line::quickfixSession() {
  FIX::Session* s = FIX::Session::lookupSession(id_);
  if (s == nullptr) throw Failure(settings_.name + ": no session");
  return s;
}

int Line::nextSender() { return quickfixSession()->getExpectedSenderNum(); }
int Line::nextTarget() { return quickfixSession()->getExpectedTargetNum(); }
void Line::skipSender(int count) { quickfixSession()->setNextSenderMsgSeqNum(nextSender() + count); }
void Line::loseIncoming(int count) {
  // QuickFIX counts a message after it has shown it.
  const auto until = std::chrono::steady_clock::now() + patience;
  while (nextTarget() <= shown_) {
    if (std::chrono::steady_clock::now() > until) throw Failure(settings_.name + ": QuickFIX has not counted what it showed");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  quickfixSession()->setNextTargetMsgSeqNum(nextTarget() - count);
}

void Line::onLogon(const FIX::SessionID&) {
  std::lock_guard<std::mutex> lock(mutex_);
  loggedOn_ = true;
  changed_.notify_all();
}

void Line::onLogout(const FIX::SessionID&) {
  std::lock_guard<std::mutex> lock(mutex_);
  loggedOn_ = false;
  changed_.notify_all();
}

void Line::toAdmin(FIX::Message& message, const FIX::SessionID&) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string type = field(message.getHeader(), 35);
  if (type == "A") {
    message.setField(553, settings_.username);
    message.setField(554, password_);
    for (const auto& f : logon_) message.setField(f.first, f.second);
  } else if (type == "3") {
    // QuickFIX rejects by itself what its dictionary does not allow.
    broken_ = "the client had to reject: " + readable(message.toString());
    changed_.notify_all();
  }
}

void Line::fromAdmin(const FIX::Message& message, const FIX::SessionID&) throw(
    FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) {
  std::lock_guard<std::mutex> lock(mutex_);
  session_.push_back(message);
  shown(message);
  changed_.notify_all();
}

// shown keeps the number of the last message that QuickFIX has shown, repetitions aside.
void Line::shown(const FIX::Message& message) {
  if (field(message.getHeader(), 43) != "Y") shown_ = std::stoi(field(message.getHeader(), 34));
}

void Line::fromApp(const FIX::Message& message, const FIX::SessionID&) throw(
    FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string type = field(message.getHeader(), 35);
  if (type == "W" || type == "X" || type == "Y") {
    market_.push_back(message);
  } else {
    if (type == "8") execution(message);
    reports_.push_back(message);
  }
  shown(message);
  changed_.notify_all();
}

// execution holds every report to the rules of ExecID (17): a new one is used
// once, and one that comes again says so and says the same.
void Line::execution(const FIX::Message& message) {
  std::string content;
  for (int tag : {37, 11, 41, 150, 39, 55, 54, 38, 44, 32, 31, 151, 14, 6, 60, 58}) {
    content += std::to_string(tag) + "=" + field(message, tag) + "|";
  }
  const std::string id = field(message, 17);
  const auto known = executions_.emplace(id, content);
  const bool again = field(message.getHeader(), 43) == "Y" || field(message.getHeader(), 97) == "Y";
  if (!known.second && known.first->second != content) {
    broken_ = "ExecID " + id + " came with other content: " + known.first->second + " and " + content;
  } else if (!known.second && !again) {
    broken_ = "ExecID " + id + " came twice, and neither PossDup nor PossResend says so: " + content;
  }
}

size_t Line::executions() {
  std::lock_guard<std::mutex> lock(mutex_);
  return executions_.size();
}

void Line::send(const std::string& msgType, const Fields& fields, bool possResend) {
  FIX::Message message;
  message.getHeader().setField(35, msgType);
  if (possResend) message.getHeader().setField(97, "Y");
  for (const auto& f : fields) message.setField(f.first, f.second);
  if (msgType != "H") message.setField(FIX::TransactTime());  // an H has none
  send(message);
}

void Line::send(FIX::Message& message) {
  if (!FIX::Session::sendToTarget(message, id_)) throw Failure(settings_.name + ": not sent");
}

FIX::Message Line::take(std::deque<FIX::Message>& from, const std::string& what) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool came = changed_.wait_for(lock, patience, [&] { return !from.empty() || !broken_.empty(); });
  if (!broken_.empty()) throw Failure(settings_.name + ": " + broken_);
  if (!came) throw Failure(settings_.name + ": no " + what + " came");
  FIX::Message message = from.front();
  from.pop_front();
  return message;
}

FIX::Message Line::report(const std::string& msgType, const Fields& fields) {
  const FIX::Message message = take(reports_, "message of type " + msgType);
  expect(message, {{35, msgType}});
  expect(message, fields);
  return message;
}

FIX::Message Line::next() { return take(reports_, "message"); }

FIX::Message Line::market() { return take(market_, "market data"); }

void Line::quiet(const char* why) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, quietTime, [this] { return !reports_.empty() || !broken_.empty(); });
  if (!broken_.empty()) throw Failure(settings_.name + ": " + broken_);
  if (!reports_.empty()) {
    throw Failure(settings_.name + ": " + why + ", but this came: " + readable(reports_.front().toString()));
  }
}

FIX::Message Line::session(const std::string& msgType) {
  const auto until = std::chrono::steady_clock::now() + logonPatience;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    for (auto m = session_.begin(); m != session_.end(); ++m) {
      if (field(m->getHeader(), 35) == msgType) {
        const FIX::Message found = *m;
        session_.erase(session_.begin(), m + 1);
        return found;
      }
    }
    if (changed_.wait_until(lock, until) == std::cv_status::timeout) {
      throw Failure(settings_.name + ": no session message of type " + msgType + " came");
    }
  }
}

void Line::forget() {
  std::lock_guard<std::mutex> lock(mutex_);
  session_.clear();
}
