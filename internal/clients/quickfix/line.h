// A line is one FIX session of the trader: QuickFIX's own initiator with its
// own file store, and what has come over it, in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/Log.h>
#include <quickfix/Session.h>
#include <quickfix/SocketInitiator.h>

// A Failure is an expectation that did not hold; its text is for a person.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Settings of a line: where the gateway is and who we are.
struct Settings {
  std::string host, port, dictionary, folder, target, name, username, password;
};

// Fields are tags with the values that they have, or must have.
using Fields = std::vector<std::pair<int, std::string>>;

// tapeLines is how many lines of a session's log a failure shows.
constexpr size_t tapeLines = 60;

class Line : public FIX::Application, public FIX::LogFactory {
 public:
  // logon are further fields of its Logon, such as 8013=N.
  Line(Settings settings, Fields logon);
  ~Line() override;

  // connect starts an initiator on the line's store and waits for the logon.
  void connect();
  // refusedWith logs on with a wrong password and returns the Logout's text.
  std::string refusedWith(const std::string& password);
  // cut closes the socket without a Logout and stays away.
  void cut();
  // leave logs out and stays away.
  void leave();

  // send sends a message; fields are in the body.
  void send(const std::string& msgType, const Fields& fields, bool possResend = false);
  void send(FIX::Message& message);

  // report waits for the next message that is not market data and holds it to
  // its type and fields. Nothing else may come before it.
  FIX::Message report(const std::string& msgType, const Fields& fields);
  // next waits for the next message that is not market data, whatever it is.
  FIX::Message next();
  // quiet fails if a report has come, or comes within a moment.
  void quiet(const char* why);
  // market waits for the next message of market data.
  FIX::Message market();
  // session waits for a session message of a type, and takes it.
  FIX::Message session(const std::string& msgType);
  // forget drops the session messages that have come so far.
  void forget();

  int nextSender();
  int nextTarget();
  // The next message of ours has a number that skips `count` numbers.
  void skipSender(int count);
  // Act as though the last `count` messages had never come.
  void loseIncoming(int count);

  const std::string& name() const { return settings_.name; }
  // tape returns the last lines of the session's log.
  std::string tape();
  // reports counts the different ExecIDs that have come.
  size_t executions();

 private:
  class Tape;

  void onCreate(const FIX::SessionID&) override {}
  void onLogon(const FIX::SessionID&) override;
  void onLogout(const FIX::SessionID&) override;
  void toAdmin(FIX::Message&, const FIX::SessionID&) override;
  void toApp(FIX::Message&, const FIX::SessionID&) throw(FIX::DoNotSend) override {}
  void fromAdmin(const FIX::Message&, const FIX::SessionID&) throw(
      FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::RejectLogon) override;
  void fromApp(const FIX::Message&, const FIX::SessionID&) throw(
      FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override;
  FIX::Log* create() override;
  FIX::Log* create(const FIX::SessionID&) override;
  void destroy(FIX::Log*) override;

  void start();
  void stop();
  void note(const std::string& line);
  void execution(const FIX::Message&);
  void shown(const FIX::Message&);
  FIX::Session* quickfixSession();
  FIX::Message take(std::deque<FIX::Message>& from, const std::string& what);

  const Settings settings_;
  const Fields logon_;
  FIX::SessionID id_;
  std::unique_ptr<FIX::FileStoreFactory> store_;
  std::unique_ptr<FIX::SessionSettings> config_;
  std::unique_ptr<FIX::SocketInitiator> initiator_;

  std::atomic<int> shown_{0};  // the number of the last message

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool loggedOn_ = false;
  std::string password_;
  std::string broken_;  // what the client itself has found wrong
  std::deque<FIX::Message> reports_, market_, session_;
  std::deque<std::string> tape_;
  std::map<std::string, std::string> executions_;  // by ExecID
};

// field returns a field's value, or "" where it is absent.
std::string field(const FIX::FieldMap& from, int tag);

// expect holds a message, or an entry of a group, to fields; a value of "*" only
// has to be there.
void expect(const FIX::Message& message, const Fields& fields);
void expect(const FIX::Group& entry, const Fields& fields);
